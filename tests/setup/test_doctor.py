"""The doctor's text is what a person acts on, so it is asserted as printed."""

from __future__ import annotations

import json

import pytest
from support.setup import saber

from pytest_saber.cli.doctor import Check, Status, engine_version, limits, render, storage

DEAD = "unix:///nonexistent/docker.sock"


def test_a_dead_engine_is_named_with_its_origin_and_what_to_do() -> None:
    result = saber("doctor", DOCKER_HOST=DEAD)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    (number,) = (number for number, line in enumerate(lines) if line.startswith("FAIL"))
    assert f"engine     no Docker engine answers at {DEAD} (DOCKER_HOST): " in lines[number]
    assert lines[number + 1].strip() == "-> Start the engine that DOCKER_HOST names, or unset DOCKER_HOST."
    assert lines[-1] == "Not ready: engine."


def test_json_says_the_same() -> None:
    result = saber("doctor", "--json", DOCKER_HOST=DEAD)
    document = json.loads(result.stdout)
    assert result.returncode == 1
    assert document["ok"] is False
    failed = [check for check in document["checks"] if check["status"] == "fail"]
    assert [check["name"] for check in failed] == ["engine"]
    assert failed[0]["fix"] == "Start the engine that DOCKER_HOST names, or unset DOCKER_HOST."


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_values_of_keys_are_never_printed(flags: tuple[str, ...]) -> None:
    secret = "sk-proj-0123456789abcdef"
    result = saber("doctor", *flags, DOCKER_HOST=DEAD, OPENAI_API_KEY=secret, ANTHROPIC_API_KEY=secret)
    assert "OPENAI_API_KEY is set" in result.stdout
    assert "ANTHROPIC_API_KEY is set" in result.stdout
    assert secret not in result.stdout + result.stderr


def test_a_missing_key_says_which_variable_to_set() -> None:
    result = saber("doctor", DOCKER_HOST=DEAD, OPENAI_API_KEY="")
    assert "OPENAI_API_KEY is not set" in result.stdout
    assert "-> For openai/... models: export OPENAI_API_KEY=..." in result.stdout


def test_a_disabled_plugin_autoload_is_noticed() -> None:
    result = saber("doctor", DOCKER_HOST=DEAD, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "WARNING  pytest" in result.stdout
    assert "-> Unset it, or give pytest `-p pytest_saber.plugin`." in result.stdout


@pytest.mark.docker
def test_a_machine_that_is_set_up_is_ready() -> None:
    result = saber("doctor")
    assert result.returncode == 0, result.stdout
    assert "OK       engine     Docker " in result.stdout
    assert "OK       image      pytest-saber/workspace:" in result.stdout
    assert "\nReady." in result.stdout


def test_a_storage_driver_without_an_upper_directory_fails() -> None:
    check = storage({"Driver": "vfs"})
    assert check.status is Status.FAIL
    assert check.detail == "vfs: the state of a workspace is read from an overlay's upper directory"
    assert storage({"Driver": "overlay2"}).status is Status.OK


def test_an_engine_that_cannot_limit_fails_and_names_what() -> None:
    check = limits({"CgroupVersion": "2", "CgroupDriver": "systemd", "MemoryLimit": True, "CpuCfsQuota": True})
    assert check.status is Status.FAIL
    assert check.detail == "cgroup v2, driver systemd; cannot limit pids"
    assert limits({"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True}).status is Status.OK


def test_windows_containers_fail_and_a_missing_call_filter_warns() -> None:
    version = {"Version": "28.0", "ApiVersion": "1.48"}
    assert engine_version({"OSType": "windows"}, version, "x").fix == "Switch the engine to Linux containers."
    assert engine_version({"OSType": "linux", "SecurityOptions": []}, version, "x").status is Status.WARNING
    assert (
        engine_version({"OSType": "linux", "SecurityOptions": ["name=seccomp,profile=default"]}, version, "x").status
        is Status.OK
    )


def test_rendering_aligns_names_and_indents_what_to_do() -> None:
    checks = [Check("python", Status.OK, "3.12.1"), Check("disk", Status.WARNING, "3 GiB free", "Free some.\nThen retry.")]
    assert render(checks) == [
        "OK       python  3.12.1",
        "WARNING  disk    3 GiB free",
        "                 -> Free some.",
        "                    Then retry.",
        "\nReady. Have a look at: disk.",
    ]
