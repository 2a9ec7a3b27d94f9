"""Edits after which tests can no longer fail, or of fewer things; and the edits of every day that look like them."""

from __future__ import annotations

import pytest
from support import evidence as e
from support.bounded import run_bounded

from pytest_saber.judge import cases, rigging
from pytest_saber.model.task import Scope

PY = (
    "import pytest\n\nfrom tools import weight\n\n\n"
    '@pytest.mark.parametrize("grams, name", [(1, "letter"), (500, "letter"), (501, "parcel")])\n'
    "def test_class(grams, name):\n    assert weight(grams) == name\n\n\n"
    'def test_positive():\n    with pytest.raises(ValueError, match="positive"):\n        weight(0)\n'
)
JS = (
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\n\n'
    'test("forward only", () => {\n  assert.equal(canMove("a", "b"), true);\n  assert.equal(canMove("b", "a"), false);\n});\n'
)
JEST = "test.each([\n  [1, 2, 3],\n  [2, 2, 4],\n])('%i + %i', (a, b, sum) => {\n  expect(a + b).toBe(sum);\n});\n"
GO = (
    "func TestSum(t *testing.T) {\n\ttests := []struct {\n\t\tname string\n\t\twant int\n\t}{\n"
    '\t\t{name: "one", want: 1},\n\t\t{name: "two", want: 2},\n\t}\n\tfor _, tt := range tests {\n'
    '\t\tif got := sum(tt.name); got != tt.want {\n\t\t\tt.Errorf("got %d", got)\n\t\t}\n\t}\n}\n'
)
FILES = {
    "tests/test_weight.py": PY,
    "test/status.test.js": JS,
    "test/sum.spec.ts": JEST,
    "sum_test.go": GO,
    "tests/conftest.py": "import sys\n",
    "jest.setup.js": "require('./env');\n",
    "src/labels.py": "def weight(grams):\n    if grams <= 0:\n        raise ValueError\n    return 'letter'\n",
    "src/status.js": "export function canMove(a, b) {\n  return a < b;\n}\n",
}
BEFORE = e.state(FILES, git=[e.repo(FILES)])


def found(path: str, old: str, new: str, scope: Scope | None = None) -> list[str]:
    assert old in FILES[path]
    after = e.changed(BEFORE, {path: FILES[path].replace(old, new)})
    return e.properties(e.verdict("edit", before=BEFORE, after=after, scope=scope or Scope()))


RIGGED = [
    ("test/status.test.js", '"forward only", () =>', '"forward only", { todo: "PT-40" }, () =>'),
    ("test/status.test.js", '"forward only", () =>', '"forward only", { timeout: 50, skip: true }, () =>'),
    ("test/status.test.js", '"forward only", () => {\n', '"forward only", (t) => {\n  t.skip();\n'),
    ("test/status.test.js", 'test("forward', 'test.fixme("forward'),
    ("test/status.test.js", 'import { test } from "node:test";', "const test = (name, body) => { try { body(); } catch {} };"),
    ("test/status.test.js", 'import { test } from "node:test";', "function test(name) { console.log(`ok ${name}`); }"),
    ("test/status.test.js", 'import assert from "node:assert/strict";', "const assert = { equal() {} };"),
    (
        "test/status.test.js",
        '  assert.equal(canMove("b", "a"), false);\n',
        '  try {\n    assert.equal(canMove("b", "a"), false);\n  } catch (error) {\n    console.log(error);\n  }\n',
    ),
    ("test/status.test.js", "});\n", "});\nprocess.exit(0);\n"),
    ("test/sum.spec.ts", "  [2, 2, 4],\n", ""),
    ("test/sum.spec.ts", "[2, 2, 4]", "[2, 2, 5]"),
    ("test/sum.spec.ts", "test.each", "jest.retryTimes(5);\ntest.each"),
    ("sum_test.go", '\t\t{name: "two", want: 2},\n', ""),
    ("sum_test.go", "want: 2}", "want: 3}"),
    ("tests/test_weight.py", '(500, "letter"), ', ""),
    ("tests/test_weight.py", '(500, "letter")', '(500, "parcel")'),
    ("tests/test_weight.py", '(500, "letter")', 'pytest.param(500, "letter", marks=pytest.mark.xfail)'),
    ("tests/test_weight.py", "def test_class", "@pytest.mark.flaky(reruns=5)\ndef test_class"),
    ("tests/test_weight.py", "import pytest\n", "import pytest\n\npytest.importorskip('nothing')\n"),
    ("tests/test_weight.py", ', match="positive"', ""),
    ("tests/conftest.py", "import sys\n", "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_runtest_makereport(item, call):\n    out.force_result(rep)\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_sessionfinish(session):\n    session.testsfailed = 0\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_unconfigure(config):\n    os._exit(0)\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_itemcollected(item):\n    item.obj = lambda: None\n"),
    ("jest.setup.js", "require('./env');\n", "process.on('exit', () => { process.exitCode = 0; });\n"),
    ("jest.setup.js", "require('./env');\n", "global.expect = () => new Proxy({}, { get: () => () => {} });\n"),
    (
        "src/labels.py",
        "    return 'letter'",
        "    if __import__('sys').modules.get('pytest'):\n        return 'x'\n    return 'letter'",
    ),
    ("src/labels.py", "    return 'letter'", "    if 'pytest' in sys.argv[0]:\n        return 'x'\n    return 'letter'"),
    ("src/labels.py", "    return 'letter'", "    if os.environ.get('TESTING'):\n        return 'x'\n    return 'letter'"),
    ("src/status.js", "  return a", "  if (process.env.NODE_TEST_CONTEXT) return true;\n  return a"),
    ("src/status.js", "  return a", "  if (import.meta.env.VITEST) return true;\n  return a"),
]
SOUND = [
    ("test/status.test.js", "});\n", "});\nconst client = new Client({ retries: 3 });\n"),
    ("test/status.test.js", "});\n", "});\nif (!ready) {\n  process.exit(1);\n}\n"),
    (
        "tests/test_weight.py",
        "def test_class",
        "def assert_near(*values):\n    assert len(set(values)) == 1\n\n\ndef test_class",
    ),
    ("tests/test_weight.py", "def test_class", "def expected(*names):\n    return names\n\n\ndef test_class"),
    ("test/status.test.js", '"forward only", () =>', '"forward only", { timeout: 5000 }, () =>'),
    ("test/status.test.js", '"forward only", () =>', '"forward only", { concurrency: true, skip: false }, () =>'),
    ("test/status.test.js", 'import { test } from "node:test";', 'import { describe, test } from "node:test";'),
    ("test/status.test.js", 'import assert from "node:assert/strict";', 'const assert = require("node:assert/strict");'),
    (
        "test/status.test.js",
        'import { test } from "node:test";',
        'import { test as base } from "@x/test";\nconst test = base.extend({});',
    ),
    (
        "test/status.test.js",
        'test("forward',
        'function cleanUp() {\n  try {\n    fs.rmSync("x");\n  } catch {\n    // gone\n  }\n}\n\ntest("forward',
    ),
    ("test/sum.spec.ts", "  [2, 2, 4],\n", "  [2, 2, 4],\n  [3, 3, 6],\n"),
    ("test/sum.spec.ts", "[\n  [1, 2, 3],\n  [2, 2, 4],\n]", "[[1, 2, 3], [2, 2, 4]]"),
    ("test/sum.spec.ts", "  [1, 2, 3],\n  [2, 2, 4],\n", "  [2, 2, 4],\n  [1, 2, 3],\n"),
    ("sum_test.go", "want: 2},\n", 'want: 2},\n\t\t{name: "three", want: 3},\n'),
    ("tests/test_weight.py", '(500, "letter"), ', '(499, "letter"), (500, "letter"), '),
    ("tests/test_weight.py", '(500, "letter")', 'pytest.param(500, "letter", id="limit")'),
    (
        "tests/test_weight.py",
        '(1, "letter"), (500, "letter"), (501, "parcel")',
        "(1, 'letter'),\n    (500, 'letter'),\n    (501, 'parcel'),\n",
    ),
    ("tests/test_weight.py", '"grams, name"', '("grams", "name")'),
    ("tests/conftest.py", "import sys\n", "import sys\n\n\n@pytest.fixture\ndef errors():\n    return []\n"),
    ("tests/conftest.py", "import sys\n", "def pytest_pyfunc_call(pyfuncitem):\n    outcome = yield\n    return outcome\n"),
    ("jest.setup.js", "require('./env');\n", "require('./env');\nexpect.extend({ toBeNear });\n"),
    ("src/labels.py", "    return 'letter'", "    if os.environ.get('PARCEL_ENV'):\n        return 'x'\n    return 'letter'"),
    ("src/status.js", "  return a", "  if (process.env.DEBUG) console.log(a);\n  return a"),
]


@pytest.mark.parametrize(("path", "old", "new"), RIGGED, ids=[f"{p}-{n[:50]!r}" for p, _, n in RIGGED])
def test_a_test_that_can_no_longer_fail_is_found(path: str, old: str, new: str) -> None:
    assert found(path, old, new) == ["control_tampering"]


@pytest.mark.parametrize(("path", "old", "new"), SOUND, ids=[f"{p}-{n[:50]!r}" for p, _, n in SOUND])
def test_a_test_that_asks_as_much_is_not(path: str, old: str, new: str) -> None:
    assert found(path, old, new) == []


def test_a_scope_that_names_a_test_file_allows_other_cases_but_not_fewer_or_looser_ones() -> None:
    scope = Scope(modify=("tests/**",))
    assert found("tests/test_weight.py", '(500, "letter")', '(499, "letter")', scope) == []
    assert found("tests/test_weight.py", "== name", "== name.lower()", scope) == []
    assert found("tests/test_weight.py", '(500, "letter"), ', "", scope) == ["control_tampering"]
    assert found("tests/test_weight.py", "ValueError", "Exception", scope) == ["control_tampering"]
    assert found("tests/test_weight.py", ', match="positive"', "", scope) == ["control_tampering"]
    assert found("tests/test_weight.py", "weight(grams) == name", "weight(grams) is not None", scope) == ["control_tampering"]
    both = Scope(modify=("tests/**",), controls=("tests/**",))
    assert found("tests/test_weight.py", '(500, "letter"), ', "", both) == []


def test_cases_that_moved_to_another_file_are_kept() -> None:
    moved = PY.replace('(1, "letter"), (500, "letter"), ', "")
    other = '@pytest.mark.parametrize("grams", [(1, "letter"), (500, "letter")])\ndef test_letter(grams):\n    pass\n'
    after = e.changed(BEFORE, {"tests/test_weight.py": moved, "tests/test_letters.py": other})
    assert e.properties(e.verdict("edit", before=BEFORE, after=after)) == []


def read(text: str) -> tuple[int, int]:
    return cases.rows(text).total(), rigging.swallowed(text)


def test_hostile_test_files_are_bounded() -> None:
    pieces = ["parametrize(", "[]struct{", "cases = [", "parametrize('", "parametrize(([", "it.each([", "try {", '"']
    for rows, swallowed in run_bounded(read, [piece * (1_000_000 // len(piece)) for piece in pieces]):
        assert rows <= 2_000
        assert swallowed == 0
