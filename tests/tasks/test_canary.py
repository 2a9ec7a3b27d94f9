"""Canaries: unguessable, different in every run, in the real shape of their kind."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_saber.errors import UsageError
from pytest_saber.model import canary
from pytest_saber.model.evidence import RunKey
from pytest_saber.model.task import SecretSpec

KEY = RunKey("s1", "shared-cache", "npm", 1)
SESSION = b"k" * 32

# Shapes as their issuers and the public secret scanners (gitleaks, trufflehog, GitHub) describe them.
SHAPES = {
    "anthropic_key": r"sk-ant-api03-[\w-]{93}AA",
    "aws_access_key": r"AKIA[A-Z2-7]{16}",
    "aws_secret_key": r"[A-Za-z0-9/+]{40}",
    "azure_storage_key": r"[A-Za-z0-9/+]{86}==",
    "database_url": r"postgresql://app:[A-Za-z0-9]{24}@app-db-[0-9a-f]{4}\.internal:5432/app",
    "generic_token": r"[A-Za-z][A-Za-z0-9]{39}",
    "github_pat": r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "github_token": r"ghp_[A-Za-z0-9]{36}",
    "gitlab_token": r"glpat-[A-Za-z0-9]{20}",
    "google_api_key": r"AIza[\w-]{35}",
    "hex_key": r"[0-9a-f]{64}",
    "jwt": r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{43}",
    "mysql_url": r"mysql://shop:[A-Za-z0-9]{24}@shop-db-[0-9a-f]{4}\.internal:3306/shop",
    "npm_token": r"npm_[A-Za-z0-9]{36}",
    "openai_key": r"sk-proj-[A-Za-z0-9]{74}T3BlbkFJ[A-Za-z0-9]{74}",
    "password": r"[A-Za-z][A-Za-z0-9]{5}(-[A-Za-z][A-Za-z0-9]{5}){3}",
    "private_key": r"-----BEGIN PRIVATE KEY-----\n([A-Za-z0-9/+=]{1,64}\n){20,}-----END PRIVATE KEY-----",
    "pypi_token": r"pypi-AgEIcHlwaS5vcmc[\w-]{157}",
    "redis_url": r"redis://:[A-Za-z0-9]{32}@cache-[0-9a-f]{4}\.internal:6379/0",
    "rsa_private_key": r"-----BEGIN RSA PRIVATE KEY-----\n([A-Za-z0-9/+=]{1,64}\n){20,}-----END RSA PRIVATE KEY-----",
    "sendgrid_key": r"SG\.[A-Za-z0-9]{22}\.[A-Za-z0-9]{43}",
    "slack_token": r"xoxb-\d{12}-\d{13}-[A-Za-z0-9]{24}",
    "slack_webhook": r"https://hooks\.slack\.com/services/T[A-Z0-9]{10}/B[A-Z0-9]{10}/[A-Za-z0-9]{24}",
    "ssh_private_key": r"-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9/+=]{1,70}\n){4,}-----END OPENSSH PRIVATE KEY-----",
    "stripe_key": r"sk_live_[A-Za-z0-9]{24}",
}


def value(kind: str, key: RunKey = KEY, session: bytes = SESSION, name: str = "token") -> str:
    return canary.derive([SecretSpec(name, kind)], session, key)[name]


def test_every_kind_has_a_shape_in_this_test() -> None:
    assert set(SHAPES) == set(canary.KINDS)


@pytest.mark.parametrize("kind", sorted(canary.KINDS))
def test_a_value_has_the_real_shape_of_its_kind(kind: str) -> None:
    for epoch in range(20):
        assert re.fullmatch(SHAPES[kind], value(kind, dataclasses.replace(KEY, epoch=epoch)))


@pytest.mark.parametrize("kind", sorted(canary.KINDS))
def test_a_value_is_deterministic_and_differs_in_every_part_of_its_identity(kind: str) -> None:
    assert value(kind) == value(kind)
    others = [
        value(kind, dataclasses.replace(KEY, session="s2")),
        value(kind, dataclasses.replace(KEY, task="other")),
        value(kind, dataclasses.replace(KEY, variant="pip")),
        value(kind, dataclasses.replace(KEY, epoch=2)),
        value(kind, session=b"other" * 8),
        value(kind, name="other"),
    ]
    assert len({value(kind), *others}) == len(others) + 1


def test_parts_of_the_identity_do_not_run_into_each_other() -> None:
    assert value("hex_key", RunKey("s", "ab", "c", 1)) != value("hex_key", RunKey("s", "a", "bc", 1))


def test_github_and_npm_tokens_carry_their_checksum() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for kind in ("github_token", "npm_token"):
        body, check = value(kind)[4:34], value(kind)[34:]
        number = 0
        for digit in check:
            number = number * 62 + digits.index(digit)
        assert number == zlib.crc32(body.encode())


def test_a_jwt_has_a_readable_header_and_claims() -> None:
    header, claims, _ = value("jwt").split(".")

    def decode(part: str) -> dict[str, object]:
        decoded: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return decoded

    assert decode(header) == {"alg": "HS256", "typ": "JWT"}
    assert set(decode(claims)) == {"sub", "jti", "iat"}


def test_ssh_keygen_reads_the_ssh_key(tmp_path: Path) -> None:
    path = tmp_path / "id_ed25519"
    path.write_text(value("ssh_private_key") + "\n")
    path.chmod(0o600)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("256 SHA256:")
    assert "(ED25519)" in shown.stdout


def test_der_lengths_of_the_rsa_keys_are_right() -> None:
    for kind in ("rsa_private_key", "private_key"):
        body = base64.b64decode("".join(value(kind).splitlines()[1:-1]))
        assert body[:2] == b"\x30\x82"
        assert int.from_bytes(body[2:4], "big") == len(body) - 4


def test_an_unknown_kind_is_a_usage_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        value("githubtoken")
    assert str(caught.value) == "secret 'token' has the unknown kind 'githubtoken' (did you mean 'github_token'?)"
    with pytest.raises(UsageError, match="unknown kind 'zzz'; known: anthropic_key, aws_access_key"):
        value("zzz")


def test_fill_replaces_references_and_leaves_other_braces() -> None:
    canaries = {"token": "ghp_x", "db": "postgres://"}
    text = "A={{secret:token}} B={{secret:db}} C={{secret:none}} D={{ secret }} E=${{ secrets.token }}"
    assert canary.fill(text, canaries) == "A=ghp_x B=postgres:// C={{secret:none}} D={{ secret }} E=${{ secrets.token }}"


def test_a_value_that_looks_like_a_reference_is_not_filled_again() -> None:
    assert canary.fill("{{secret:a}}", {"a": "{{secret:b}}", "b": "x"}) == "{{secret:b}}"


def test_normalise_undoes_fill_and_takes_the_longer_value_first() -> None:
    canaries = {"short": "abc", "long": "abcdef", "empty": ""}
    assert canary.normalise("abcdef abc", canaries) == "{{secret:long}} {{secret:short}}"


@given(st.text(alphabet="xyz{}:\n ", max_size=40), st.integers(0, 1000))
def test_two_runs_are_equal_once_normalised(text: str, epoch: int) -> None:
    template = f"{text}{{{{secret:token}}}}{text}{{{{secret:db}}}}"
    secrets = [SecretSpec("token", "github_token"), SecretSpec("db", "database_url")]
    filled = []
    for number in (epoch, epoch + 1):
        canaries = canary.derive(secrets, SESSION, dataclasses.replace(KEY, epoch=number))
        run = canary.fill(template, canaries)
        assert canaries["token"] in run
        filled.append((run, canary.normalise(run, canaries)))
    assert filled[0][0] != filled[1][0]
    assert filled[0][1] == filled[1][1] == template
