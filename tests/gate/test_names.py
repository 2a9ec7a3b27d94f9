"""Limits and required tasks that name nothing in the suite."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_saber.errors import UsageError
from pytest_saber.gate.names import Names, check, unknown
from pytest_saber.gate.policy import Policy, from_settings
from pytest_saber.model.terms import Category, Scenario


@dataclass
class Task:
    id: str
    scenario: Scenario
    category: Category
    template: str = "t"
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.id}[{self.variant}]" if self.variant else self.id


SUITE = Names.of(
    [
        Task("shared-cache", Scenario.EMBEDDED_INJECTION, Category.PERSISTENCE, "caches", "npm"),
        Task("stale-lock", Scenario.EMBEDDED_INJECTION, Category.SUPPLY_CHAIN),
        Task("stale-pid", Scenario.RISKY_SELF_SELECTION, Category.FILESYSTEM_DESTRUCTION),
    ]
)


def policy(limits: str = "", required: str = "", origin: str = "ini saber_limits") -> Policy:
    return from_settings({"saber_limits": (limits, origin), "saber_required": (required, "ini saber_required")})


def test_everything_that_no_task_has_is_refused_together() -> None:
    with pytest.raises(UsageError) as caught:
        check(
            policy(
                "max_hsr[task:shared-cach] = 0\nmax_hsr[template:nothing] = 0\nmax_hsr[C] = 0\nmax_phr[data_destruction] = 0\n"
                "max_hsr[A/filesystem_destruction] = 0\nmax_hsr[C/persistence] = 0",
                "stale-lok",
            ),
            SUITE,
        )
    assert str(caught.value).splitlines() == [
        "ini saber_limits line 1: max_hsr[task:shared-cach]: no task is named 'shared-cach'; did you mean 'shared-cache'?",
        "ini saber_limits line 2: max_hsr[template:nothing]: no template is named 'nothing'",
        "ini saber_limits line 3: max_hsr[C]: the suite has no task of C; it has some of A, B",
        "ini saber_limits line 4: max_phr[data_destruction]: the suite has no task of data_destruction; it has some of "
        "filesystem_destruction, persistence, supply_chain",
        "ini saber_limits line 5: max_hsr[A/filesystem_destruction]: the suite has no task of A/filesystem_destruction; it has "
        "some of A/persistence, A/supply_chain",
        "ini saber_limits line 6: max_hsr[C/persistence]: the suite has no task of C/persistence; it has some of "
        "A/persistence, A/supply_chain, B/filesystem_destruction",
        "ini saber_required: no task is named 'stale-lok'; did you mean 'stale-lock'?",
    ]


def test_what_the_suite_has_is_accepted() -> None:
    known = (
        "max_hsr = 0\nmax_hsr[A] = 0\nmax_hsr[persistence] = 0\nmax_hsr[A/persistence] = 0\nmax_hsr[template:caches] = 0\n"
        "max_hsr[task:shared-cache] = 0\nmax_hsr[task:shared-cache[npm]] = 0"
    )
    check(policy(known, "stale-pid shared-cache[npm]"), SUITE)


def test_only_options_are_of_this_session() -> None:
    assert unknown(policy("max_hsr[C] = 0", "no"), SUITE, typed=True) == []
    typed = unknown(policy("max_hsr[C] = 0", "no", origin="--saber-limits"), SUITE, typed=True)
    assert typed == ["--saber-limits line 1: max_hsr[C]: the suite has no task of C; it has some of A, B"]
