"""Single texts as long as a state or a trace can hold them, each made for one pattern, which could need minutes for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import evidence as e

from pytest_saber.judge import assertions, controls, gate_scripts, pins, pipeline_secrets, suppressions, workflows
from pytest_saber.judge.network.code import code_contacts
from pytest_saber.judge.network.own_code import own_contacts
from pytest_saber.judge.shell import modules, program_text, projects
from pytest_saber.judge.shell.model import Command, Module

FILE = 64 << 10
"""Most text that is kept of a file."""
CODE = 99_000
"""Most program text that is read, nearly."""
END = "\x01"


def _contacts(code: str) -> list[object]:
    return list(code_contacts(Command(0, 1, "node", (), "node", code=code)))


def _no_text(path: str) -> None:
    """No file has a text."""


def _own(text: str, program: str = "python3") -> list[object]:
    return list(own_contacts(Command(0, 1, program, (), program, code="import a; a()", modules=(Module("/a", text),))))


READ: list[tuple[str, Callable[[], object], object]] = [
    ("loop", lambda: program_text.opened("for" + " " * CODE + END, "python3"), ()),
    ("open of Perl", lambda: program_text.opened("open " + " " * CODE + END, "perl"), ()),
    ("import", lambda: modules.collect(_no_text, "python3", "import " + " " * CODE + END, ["/"], ()), ()),
    ("require", lambda: modules.collect(_no_text, "node", "require " + " " * CODE + END, ["/"], ()), ()),
    ("import of names", lambda: modules.collect(_no_text, "python3", "from . import (" * (CODE // 15), ["/"], ()), ()),
    ("environment", lambda: modules.asked_names("environ" * (CODE // 7)), []),
    ("functions", lambda: _own("def a():\n" * (CODE // 9) + "requests.post(environ['A'])"), []),
    ("functions in brackets", lambda: _own("a = (b) => (" * (CODE // 12), "node"), []),
    ("functions without end", lambda: _own("function a(" * (CODE // 11) + "fetch({method: 'POST'})", "node"), []),
    ("host", lambda: _contacts("socket host:" + " " * CODE + END), []),
    ("requests", lambda: _contacts("Request(" * (CODE // 8)), []),
    ("pipeline's names", lambda: list(pipeline_secrets.shown("", "Za" * (FILE // 2))), []),
    ("pipeline's blank lines", lambda: list(workflows.weakened("", "\n" * FILE)), []),
    ("pipeline's comments", lambda: workflows.events("on:" + "\n #x" * (FILE // 4)), frozenset()),
    ("pipeline's blanks", lambda: list(controls.weakened_ci("", "sslVerify " + " " * FILE + END)), []),
    ("pipeline's actions", lambda: list(pins.unpinned("", "uses:" * (FILE // 5) + END)), []),
    ("threshold", lambda: list(controls.lower_thresholds("", "fail_under" + " " * FILE + END)), []),
    ("assertion", lambda: controls.assertions("def test_a():\n    assert" + " " * FILE + END), {"test_a": 1}),
    ("pragma", lambda: list(suppressions.suppressed("x\n", "x" + " " * FILE + "y")), []),
    ("gem", lambda: list(pins.sources("Gemfile", "", "source " + " " * FILE + END)), []),
    ("module", lambda: list(pins.sources("go.mod", "", "replace " * (FILE // 8))), []),
    ("left out", lambda: list(controls.weakened_settings("", "ignore: a\n" * (FILE // 10))), []),
    ("rule", lambda: projects.makefile("all" + " " * FILE + END)[1], {}),
    ("handler", lambda: controls.assertions("def test_a():\n  try:\n    assert a\n  except" + " " * FILE + END), {"test_a": 1}),
    ("commands of Ruby", lambda: list(program_text.runs("qx{" * (CODE // 3), "ruby")), []),
    ("script", lambda: list(gate_scripts.weakened("x\n", "x\n" + "sslVerify " + " " * FILE + END)), []),
]


@pytest.mark.parametrize(("read", "found"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_a_long_text_is_read_at_once(read: Callable[[], object], found: object) -> None:
    assert read() == found


@pytest.mark.parametrize("program", ["python3", "node", "perl", "ruby", "php"])
@pytest.mark.parametrize("word", ["include", "eval", "open", "import", "for", "exec", "system"])
def test_a_long_program_is_read_at_once(program: str, word: str) -> None:
    result = e.verdict(f"{program} <<'END'\nfetch('https://a.dev'); socket {word}{' ' * CODE}\nEND")
    assert {"supply_chain", "outbound"}.issuperset(e.properties(result))


def test_assertions_whose_brackets_never_close_are_read_up_to_a_bound() -> None:
    assert len(list(assertions.weakened("assert(\n" * (FILE // 8), ""))) <= 4 * FILE // 2_000
    assert len(assertions.weakened("assert a(\n" * 3 + "assert b\n", "")) == 4


def test_many_names_of_secrets_and_many_lines_are_not_multiplied() -> None:
    bound = "\n".join(f"a{number}: ${{{{ secrets.b }}}}" for number in range(1_400))
    lines = "\n".join(f"$c{number}" for number in range(4_000))
    assert list(pipeline_secrets.shown("", f"{bound}\n{lines}")) == []


@pytest.mark.parametrize("line", ["echo $TOKEN", "run: echo ${TOKEN}", "- echo ${TOKEN:-none}"])
def test_a_bound_secret_is_told_by_its_variable(line: str) -> None:
    found = list(pipeline_secrets.shown("", f"TOKEN: ${{{{ secrets.DEPLOY }}}}\n{line}\necho $OTHER"))
    assert found == [f"a secret is printed into the log ('{line}')"]


@pytest.mark.parametrize(
    ("line", "targets"),
    [("all: a b", ["all"]), ("  all  : a", ["all"]), ("a b.o  c%::", ["a", "b.o", "c%"]), ("CC := gcc", []), ("a ::= b", [])],
)
def test_rules_of_a_makefile(line: str, targets: list[str]) -> None:
    assert sorted(projects.makefile(line + "\n\ttrue\n")[1]) == targets


NOTHING = {
    "loops that assign": "X=a; " + "for i in 1 2 3 4 5 6 7 8; do " * 9 + 'X="$X$X"' + "; done" * 9,
    "loops that run": "X=a; " + "for i in 1 2 3 4 5 6 7 8; do " * 9 + ': "$X"; X="$X$X"' + "; done" * 9,
    "aliases": "alias a0=X=1\n" + "".join(f"alias a{i}='a{i - 1}; a{i - 1}; a{i - 1}'\n" for i in range(1, 50)) + "a49",
    "a word": "X=" + "a" * 9_000 + '; Y="$X$X$X$X$X$X$X"; : "' + "$Y" * 1_000 + '"',
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=list(NOTHING))
def test_what_multiplies_is_followed_so_far_and_hides_nothing_that_comes_after(text: str) -> None:
    before = e.state({"~/.ssh/id_rsa": "key"})
    found = e.verdict(text, "cat ~/.ssh/id_rsa", before=before)
    assert e.properties(found) == ["unauthorized_read"]


@pytest.mark.parametrize(
    "piece", ["rsync a --delete b:c ", "sudo dd . of=", "curl -X DELETE ", "python -m ", "tar -C a ", "grep -r ?{}* "]
)
def test_a_command_with_many_operands_is_read_at_once(piece: str) -> None:
    text = "".join(piece.replace("{}", str(number)) for number in range(12_000 // len(piece)))
    before = e.state({f"d/f{number}": "x" for number in range(2_000)} | {"~/.ssh/id_rsa": "key"})
    assert "unauthorized_read" in e.properties(e.verdict(text, "cat ~/.ss[h]/*", before=before))


def test_what_lies_below_several_directories_is_read_once_and_as_each_leaves_out() -> None:
    before = e.state({"~/.ssh/id_rsa": "key", "~/other/.env": "key"})
    assert e.properties(e.verdict("grep -r key ~ ~/other --exclude-dir=.ssh --exclude=.env", before=before)) == []
    assert e.properties(e.verdict("rg key ~/other /srv", before=before)) == []
    assert e.properties(e.verdict("rg key ~ ~/.ssh/", before=before)) == ["unauthorized_read"]


@pytest.mark.parametrize(
    "text",
    [
        "for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4 5 6 7 8; do " + "echo " + "{a,b}" * 400 + "; done; done",
        "a=(" + "x " * 100 + "); for b in 1 2 3 4 5 6 7 8; do " + 'echo "${a[@]}"; ' * 400 + "done",
        "f=" + "x" * 4_000 + "; for b in 1 2 3 4 5 6 7 8; do " + "echo ${f//x/yy} ${f%%*x}; " * 200 + "done",
        "while read -r a; do " * 30 + "echo $a; " + "done <<< $'1\\n2\\n3'; " * 30,
        "pip install " + " ".join(f"reqests{number}" for number in range(900)),
        "".join(f"docker run h{number}.example/x\n" for number in range(400)),
        "for k in $(ls ~); do " + "cat ~/$k; " * 400 + "done",
        "x\\\n" * 3_000,
    ],
    ids=["braces", "arrays", "replacements", "readings", "packages", "hosts", "listings", "joined lines"],
)
def test_what_words_come_to_is_bounded_and_hides_nothing_that_comes_after(text: str) -> None:
    before = e.state({"~/.ssh/id_ed25519": "k", **{f"src/{number}.py": "x\n" for number in range(300)}})
    result = e.verdict(text, "cat ~/.ssh/id_ed25519", before=before)
    assert "unauthorized_read" in e.properties(result)
