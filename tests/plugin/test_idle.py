"""Settings without effect: refused where they were typed, told in the header where they are configured."""

from __future__ import annotations

import pytest
from support.suites import Suite

SAFE = "--saber-model=reference/safe"
REPLAYS = "has no effect with reference/safe, which replays calls that tasks hold and asks no model"
STRICT = (
    "--saber-stop-when-decided: has no effect with the policy strict, where any run may be the harmful one; -x ends a session "
    "with its first harmful run, and the policy gate decides about limits"
)
NO_BASELINE = "has no effect without a baseline to compare with; name one with --saber-baseline=FILE"
ALONE = "is not handed to the agent mine:make, which is called with the task alone"

MINE = """
from pytest_saber.agents.reference import create
from pytest_saber.agents.options import AgentOptions
make = create("reference/safe", AgentOptions())
"""

CASES = [
    (
        ["--saber-seed=7"],
        "--saber-seed: has no effect without --saber-stop-when-decided: it is the seed of its order",
    ),
    (
        ["--saber-max-hsr=0", "--saber-stop-level", "0.1"],
        "--saber-stop-level: has no effect without --saber-stop-when-decided: it is the level of its test",
    ),
    (
        ["--saber-max-hsr=0", "--saber-stop-when-decided", "--saber-policy=report"],
        "--saber-stop-when-decided: has no effect with the policy report, under which nothing is decided",
    ),
    (["--saber-stop-when-decided"], STRICT),
    (["--saber-max-hsr=0.5", "--saber-policy=strict", "--saber-stop-when-decided"], STRICT),
    (["--saber-max-hsr=0", "--saber-tolerance=5%"], f"--saber-tolerance: {NO_BASELINE}"),
    (["--saber-max-hsr=0", "--saber-alpha=0.1"], f"--saber-alpha: {NO_BASELINE}"),
    (
        ["--saber-min-effective=1", "--saber-reading=confident"],
        "--saber-reading: has no effect without a limit on a rate, such as --saber-max-hsr=0.2",
    ),
    (["--saber-model-arg=temperature=0"], f"--saber-model-arg: {REPLAYS}"),
    (["--saber-base-url=http://127.0.0.1:1/v1"], f"--saber-base-url: {REPLAYS}"),
    (["--saber-agent-arg=a=b"], f"--saber-agent-arg: {REPLAYS}"),
    (["--saber-tool-format=auto"], f"--saber-tool-format: {REPLAYS}"),
    (
        ["--saber-model=reference/none", "--saber-tool-format=auto"],
        f"--saber-tool-format: {REPLAYS.replace('safe', 'safe, reference/none')}",
    ),
    (["--saber-agent=mine:make", "--saber-model-arg=a=b"], f"--saber-model-arg: {ALONE}"),
    (["--saber-agent=mine:make", "--saber-base-url=http://127.0.0.1:1/v1"], f"--saber-base-url: {ALONE}"),
    (["--saber-agent=mine:make", "--saber-agent-arg=a=b"], f"--saber-agent-arg: {ALONE}"),
    (["--saber-agent=mine:make", "--saber-tool-format=fenced"], f"--saber-tool-format: {ALONE}"),
    (["--saber-judge-votes=3"], "--saber-judge-votes: there is no semantic judge; name one with --saber-judge"),
    (["--saber-judge-arg=a=b"], "--saber-judge-arg: there is no semantic judge; name one with --saber-judge"),
    (["--saber-judge-base-url=http://h"], "--saber-judge-base-url: there is no semantic judge; name one with --saber-judge"),
    (
        ["--saber-jobs=2", "-n", "1"],
        "--saber-jobs: has no effect with xdist, whose workers run one at a time each; say how many with -n, or leave out -n",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), CASES, ids=[message.partition(":")[0] for _, message in CASES])
def test_an_option_without_effect_is_refused(suite: Suite, arguments: list[str], message: str) -> None:
    suite.tasks("a")
    suite.add("mine.py", MINE)
    result = suite.run(SAFE, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[:1] == [f"ERROR: {message}"]
    assert suite.opened == []


def test_all_of_them_are_named_at_once(suite: Suite) -> None:
    suite.tasks("a")
    result = suite.run(SAFE, "--saber-seed=7", "--saber-alpha=0.1")
    assert [line.partition(": has")[0] for line in result.errlines if line] == ["ERROR: --saber-alpha", "ERROR: --saber-seed"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_configured_for_other_sessions_they_are_told_in_the_header(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    suite.tasks("a")
    suite.pytester.makeini(
        "[pytest]\naddopts = -p no:cacheprovider --saber-agent-arg=a=b\nsaber_tolerance = 5%\nsaber_judge_votes = 3\n"
        f"saber_jobs = {2 if workers else 1}\n"
    )
    monkeypatch.setenv("SABER_MODEL_ARG", "temperature=0")
    result = suite.run(SAFE, *workers)
    assert result.ret == 0
    told = [line for line in result.outlines if "no effect" in line]
    jobs = [f"saber: no effect in this session: ini saber_jobs: {CASES[-1][1].partition(': ')[2]}"] if workers else []
    assert told == [
        f"saber: no effect in this session: env SABER_MODEL_ARG: {REPLAYS}",
        f"saber: no effect in this session: --saber-agent-arg: {REPLAYS}",
        *jobs,
        "saber: no effect in this session: ini saber_judge_votes: there is no semantic judge; name one with --saber-judge",
        f"saber: no effect in this session: ini saber_tolerance: {NO_BASELINE}",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--saber-max-hsr=1", "--saber-stop-when-decided", "--saber-seed=7", "--saber-stop-level=0.1"],
        ["--saber-limits=max_hsr[B]=1", "--saber-reading=confident"],
        ["--saber-baseline=new.json", "--saber-update-baseline", "--saber-tolerance=5%", "--saber-alpha=0.1"],
        # A shard hands its policy on to the merge, which may have a baseline.
        ["--saber-shard=1/1", "--saber-policy=report", "--saber-tolerance=5%", "--saber-reading=confident"],
        ["--saber-jobs=2", "-n", "0"],
    ],
)
def test_what_they_are_a_part_of_gives_them_effect(suite: Suite, arguments: list[str]) -> None:
    suite.tasks("a")
    result = suite.run(SAFE, *arguments)
    assert result.ret == 0
    assert "no effect" not in result.stdout.str()


def test_one_model_that_asks_a_service_is_enough(suite: Suite) -> None:
    suite.tasks("a")
    suite.add("calls.json", "{}")
    result = suite.run(SAFE, "--saber-model=scripted/calls.json", "--saber-model-arg=native_tools=true")
    assert "no effect" not in result.stdout.str() + result.stderr.str()


def test_a_hook_may_read_the_settings_itself(suite: Suite) -> None:
    suite.tasks("a")
    suite.add(
        "conftest.py",
        (suite.path / "conftest.py").read_text()
        + "\nfrom mine import make\n\ndef pytest_saber_agent(config):\n    assert config.getoption('saber_agent_arg')\n"
        "    return make\n",
    )
    suite.add("mine.py", MINE)
    result = suite.run(SAFE, "--saber-agent-arg=a=b")
    assert result.ret == 0
    assert "no effect" not in result.stdout.str()
