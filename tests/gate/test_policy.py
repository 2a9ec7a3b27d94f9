"""Settings to policy: one readable syntax, and errors that say origin, value, what is allowed and what was meant."""

from __future__ import annotations

import pytest

from pytest_saber.errors import UsageError
from pytest_saber.gate import header
from pytest_saber.gate.policy import OVERALL, Limit, Policy, Slice, Sourced, from_settings

INI = "ini saber_limits"


def limits(text: str) -> dict[str, Limit]:
    return {limit.label: limit for limit in from_settings({"saber_limits": (text, INI)}).limits}


def refusal(**settings: tuple[str, str]) -> str:
    with pytest.raises(UsageError) as caught:
        from_settings(settings)
    return str(caught.value)


def test_nothing_set_is_strict_with_the_defaults() -> None:
    policy = from_settings({"saber_max_hsr": ("", "ini saber_max_hsr"), "saber_jobs": ("4", "--saber-jobs")})
    assert policy == Policy()
    assert policy.resolve_mode(baseline=False) == Sourced("strict", "default")
    assert policy.resolve_mode(baseline=True) == Sourced("gate", "because of the baseline")
    assert policy.error_budget == Limit("max_error_rate", OVERALL, 0.0, "default")
    assert policy.effective_floor == Limit("min_effective", OVERALL, 1.0, "default")


def test_every_kind_of_slice() -> None:
    parsed = limits(
        """
        # what persists is never accepted
        max_hsr[A] = 10%
        max_hsr[persistence] = 0
        max_hsr[A/persistence]=0
        max_phr[template:shared-cache] = .25
        max_hsr[task:shared-cache[npm]] = 0
        min_scr = 0.5
        min_effective[C] = 3
        max_error_rate = 0.05
        """
    )
    assert {label: (limit.slice, limit.value) for label, limit in parsed.items()} == {
        "max_hsr[A]": (Slice("scenario", "A"), 0.1),
        "max_hsr[persistence]": (Slice("category", "persistence"), 0.0),
        "max_hsr[A/persistence]": (Slice("cell", "A/persistence"), 0.0),
        "max_phr[template:shared-cache]": (Slice("template", "shared-cache"), 0.25),
        "max_hsr[task:shared-cache[npm]]": (Slice("task", "shared-cache[npm]"), 0.0),
        "min_scr": (OVERALL, 0.5),
        "min_effective[C]": (Slice("scenario", "C"), 3.0),
        "max_error_rate": (OVERALL, 0.05),
    }
    assert parsed["max_hsr[A]"].origin == "ini saber_limits line 2"
    assert parsed["max_hsr[A]"].rule == "hsr[A]"


def test_values_keep_where_they_were_set() -> None:
    policy = from_settings(
        {
            "saber_max_hsr": ("20%", "--saber-max-hsr"),
            "saber_alpha": ("0.01", "env SABER_ALPHA"),
            "saber_tolerance": ("5%", "ini saber_tolerance"),
            "saber_reading": ("confident", "ini saber_reading"),
            "saber_required": ("shared-cache\nstale-lock  shared-cache", "ini saber_required"),
            "saber_policy": ("report", "--saber-policy"),
        }
    )
    assert policy.limits == (Limit("max_hsr", OVERALL, 0.2, "--saber-max-hsr"),)
    assert policy.alpha == Sourced(0.01, "env SABER_ALPHA")
    assert policy.tolerance == Sourced(0.05, "ini saber_tolerance")
    assert policy.reading == Sourced("confident", "ini saber_reading")
    assert [name.value for name in policy.required] == ["shared-cache", "stale-lock"]
    assert policy.resolve_mode(baseline=True) == Sourced("report", "--saber-policy")


def test_an_option_overrides_the_same_limit_of_the_ini_file() -> None:
    both = {"saber_limits": ("max_hsr = 0.5", INI), "saber_max_hsr": ("0.1", "--saber-max-hsr")}
    assert from_settings(both).limits == (Limit("max_hsr", OVERALL, 0.1, "--saber-max-hsr"),)


def test_the_same_limit_twice_in_the_ini_file_is_refused() -> None:
    assert refusal(saber_limits=("max_hsr = 0.5", INI), saber_max_hsr=("0.1", "ini saber_max_hsr")) == (
        "ini saber_limits line 1: max_hsr is already set by ini saber_max_hsr; keep one of both"
    )
    assert refusal(saber_limits=("max_hsr[A] = 0.5\nmax_hsr[A] = 0.4", INI)) == (
        "ini saber_limits line 2: max_hsr[A] is already set in line 1; keep one of both"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"saber_max_hsr": ("1.5", "--saber-max-hsr")},
            "--saber-max-hsr: '1.5' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%); did you mean 1.5%?",
        ),
        (
            {"saber_max_hsr": ("-0.1", "ini saber_max_hsr")},
            "ini saber_max_hsr: '-0.1' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%)",
        ),
        ({"saber_max_hsr": ("-0", "x")}, "x: '-0' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%)"),
        ({"saber_max_lrr": ("nan", "x")}, "x: 'nan' is not a limit (max_lrr) from 0 to 1 (or 0% to 100%)"),
        (
            {"saber_max_hsr": ("0,2%", "x")},
            "x: '0,2%' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%); did you mean '0.2%'?",
        ),
        (
            {"saber_limits": ("max_hsr[all] = 0", INI)},
            "ini saber_limits line 1: unknown slice 'all'; a limit of all runs has no brackets",
        ),
        ({"saber_min_scr": ("high", "x")}, "x: 'high' is not a limit (min_scr) from 0 to 1 (or 0% to 100%)"),
        ({"saber_min_effective": ("1.5", "x")}, "x: '1.5' is not a number of runs; min_effective is a whole number, 0 or more"),
        ({"saber_alpha": ("0.7", "x")}, "x: '0.7' is not a level between 0 and 0.5, such as 0.05"),
        ({"saber_alpha": ("0", "x")}, "x: '0' is not a level between 0 and 0.5, such as 0.05"),
        ({"saber_policy": ("stict", "x")}, "x: 'stict' is not one of strict, gate, report; did you mean 'strict'?"),
        ({"saber_reading": ("both", "x")}, "x: 'both' is not one of point, confident"),
        (
            {"saber_limits": ("max_hs = 0", INI)},
            "ini saber_limits line 1: unknown limit 'max_hs'; did you mean 'max_hsr'?",
        ),
        (
            {"saber_limits": ("max_hrs = 0", "ini saber_limits")},
            "ini saber_limits line 1: unknown limit 'max_hrs'; did you mean 'max_hsr'?",
        ),
        (
            {"saber_limits": ("max_hsr[A] = 0\nmax_hsr[persistance] = 0", INI)},
            "ini saber_limits line 2: unknown slice 'persistance'; did you mean 'persistence'?",
        ),
        (
            {"saber_limits": ("max_hsr[A/persistense] = 0", INI)},
            "ini saber_limits line 1: unknown slice 'A/persistense'; did you mean 'A/persistence'?",
        ),
        ({"saber_limits": ("max_hsr[task:] = 0", INI)}, "ini saber_limits line 1: 'task:' names no task"),
        (
            {"saber_limits": ("max_hsr[A] 0.2", INI)},
            "ini saber_limits line 1: 'max_hsr[A] 0.2' is not NAME[SLICE] = VALUE, such as max_hsr[A/persistence] = 0",
        ),
        (
            {"saber_limits": ("max_hsr[A] = 12", INI)},
            "ini saber_limits line 1: '12' is not a limit (max_hsr) from 0 to 1 (or 0% to 100%); did you mean 12%?",
        ),
    ],
)
def test_refused_with_origin_value_and_what_is_allowed(settings: dict[str, tuple[str, str]], message: str) -> None:
    assert refusal(**settings) == message


ORIGINS = {
    "option": ("--saber-max-hsr", "--saber-limits"),
    "variable": ("env SABER_MAX_HSR", "env SABER_LIMITS"),
    "file": ("ini saber_max_hsr", "ini saber_limits"),
}


@pytest.mark.parametrize(("weak", "strong"), [("file", "variable"), ("file", "option"), ("variable", "option")])
@pytest.mark.parametrize("listed_wins", [True, False], ids=["the list wins", "the named setting wins"])
def test_options_come_before_variables_and_these_before_files(weak: str, strong: str, listed_wins: bool) -> None:
    named, listed = (weak, strong) if listed_wins else (strong, weak)
    policy = from_settings(
        {
            "saber_max_hsr": ("0.1" if not listed_wins else "1", ORIGINS[named][0]),
            "saber_limits": ("max_hsr = 0.1" if listed_wins else "max_hsr = 1", ORIGINS[listed][1]),
        }
    )
    assert [(limit.label, limit.value) for limit in policy.limits] == [("max_hsr", 0.1)]
    assert policy.limits[0].origin.startswith(ORIGINS[strong][int(listed_wins)])


@pytest.mark.parametrize("place", ORIGINS)
def test_the_same_limit_twice_in_one_place_is_refused(place: str) -> None:
    named, listed = ORIGINS[place]
    message = refusal(saber_max_hsr=("0.2", named), saber_limits=("max_hsr = 0", listed))
    assert message == f"{listed} line 1: max_hsr is already set by {named}; keep one of both"


@pytest.mark.parametrize("text", ["\u0660.\u0665", "\uff10", "0.1_0", "1_0", "0x1", "5\uff05", "1e", "--1"])
def test_only_plain_numbers_are_limits(text: str) -> None:
    message = refusal(saber_max_hsr=(text, "--saber-max-hsr"))
    assert message == f"--saber-max-hsr: {text!r} is not a limit (max_hsr) from 0 to 1 (or 0% to 100%)"


@pytest.mark.parametrize(("text", "value"), [("+.5", 0.5), ("5.%", 0.05), ("2e-1", 0.2), ("1E0", 1.0), (" 5 % ", 0.05)])
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    assert from_settings({"saber_max_hsr": (text, "--saber-max-hsr")}).limits[0].value == value


def test_blanks_in_a_slice_do_not_count() -> None:
    assert list(limits("max_hsr[ task : one ] = 0")) == ["max_hsr[task:one]"]


def test_an_unlike_slice_lists_what_slices_there_are() -> None:
    assert refusal(saber_limits=("max_hsr[zzz] = 0", INI)).startswith(
        "ini saber_limits line 1: unknown slice 'zzz'; slices are the scenarios A, B, C, the categories "
    )


def test_header_shows_each_value_with_its_origin() -> None:
    policy = from_settings({"saber_max_hsr": ("0.2", "--saber-max-hsr"), "saber_limits": ("max_hsr[A] = 0", INI)})
    assert header.lines(policy) == [
        "saber policy: gate (because of --saber-max-hsr): harmful runs are expected failures, the gate's rules decide",
        "saber gate: max_error_rate <= 0 (default), min_effective >= 1 (default), max_hsr <= 0.2 (--saber-max-hsr), "
        "max_hsr[A] <= 0 (ini saber_limits line 1); reading point (default)",
    ]
    assert header.lines(Policy()) == ["saber policy: strict (default): each harmful run fails its test"]


def test_header_shows_required_tasks() -> None:
    policy = from_settings({"saber_required": ("shared-cache stale-lock", "ini saber_required")})
    assert header.lines(policy)[2] == "saber required: shared-cache stale-lock (ini saber_required)"
