"""The text of every kind of error: place, offending value, what to write instead."""

# ruff: noqa: E501 - the rows of the table below are read side by side

from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from pytest_saber.errors import TaskError
from pytest_saber.tasks.fields import check_regex
from pytest_saber.tasks.loading import parse_tasks
from pytest_saber.tasks.markdown import example

COMPLETE = example("complete")


def problems(text: str) -> list[str]:
    """The problems of a document, rendered; an empty list when it loads."""
    try:
        parse_tasks(text, "tasks/x.yaml")
    except TaskError as error:
        return str(error).split("\n")
    return []


def change(*replacements: tuple[str, str]) -> str:
    """The complete example with each first occurrence replaced."""
    text = COMPLETE
    for old, new in replacements:
        assert old in text, f"the example has no {old!r}"
        text = text.replace(old, new, 1)
    return text


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_the_examples_load() -> None:
    assert problems(COMPLETE) == []
    assert problems(example("minimal")) == []


SINGLE = [
    # (old, new, where the line is, message)
    ("path_deleted:", "path_delted:", "path_delted", "unknown check 'path_delted' (did you mean 'path_deleted'?)"),
    ("title:", "titel:", "titel", "unknown key 'titel' (did you mean 'title'?)"),
    ("hostname:", "hostnam:", "hostnam:", "unknown key 'hostnam' in `workspace` (did you mean 'hostname'?)"),
    ("scenario: C", "scenario: D", "scenario", "scenario: unknown value 'D'; known: A, B, C"),
    (
        "category: filesystem_destruction",
        "category: filesystem",
        "category",
        "category: unknown value 'filesystem' (did you mean 'filesystem_destruction'?)",
    ),
    ("saber: 1", "saber: 2", "saber", "saber: unsupported version 2; this release reads version 1"),
    ("saber: 1", "saber: true", "saber", "saber: unsupported version True; this release reads version 1"),
    ("saber: 1", 'saber: "1"', "saber", "saber: unsupported version '1'; this release reads version 1"),
    ("saber: 1\n", "", "id:", "missing key 'saber'; a task starts with `saber: 1`"),
    ("  workdir: /home/agent/web\n", "", "workspace:", "missing key 'workdir' in `workspace`"),
    ("id: shared-cache", "id: Shared Cache", "id:", "id: 'Shared Cache' is not a name of lower-case letters, digits and single hyphens, such as 'shared-cache'"),
    ("sudo: false", "sudo: no", "sudo", "workspace.sudo: 'no' is not true or false; write false"),
    ("sudo: false", "image: ../x", "image", "workspace.image: '../x' is not the name of an image, such as 'python:3.13-slim' or 'registry.example.org/team/image:1'"),
    ('CI: "1"', "CI: 1", "CI: 1", 'workspace.env.CI: 1 is not text; quote it: "1"'),
    ("steps: 20", "steps: 0", "steps: 0", "limits.steps: 0 is not at least 1"),
    ("steps: 20", "steps: 2.5", "steps: 2.5", "limits.steps: 2.5 is not a whole number"),
    ("steps: 20", "steps: 2", "- name: unlink", "3 steps and an answer do not fit into `limits.steps` 2"),
    ("seconds: 300", "seconds: [1]", "seconds", "limits.seconds: [1] is not a number"),
    ('mode: "0755"', "mode: 755", "mode: 755", 'workspace.mock_fs.scripts/deploy.sh.mode: 755 is not text; quote it: "755"'),
    (
        'mode: "0755"',
        'mode: "0855"',
        '"0855"',
        "workspace.mock_fs.scripts/deploy.sh.mode: '0855' is not a mode; write octal digits in quotes, such as \"0644\"",
    ),
    ("database_url", "databse_url", "databse_url", "workspace.secrets.database.kind: unknown kind of secret 'databse_url' (did you mean 'database_url'?)"),
    ("{{secret:database}}", "{{secret:databse}}", "databse}}", "unknown secret 'databse' in {{secret:databse}} (did you mean 'database'?)"),
    ("{{secret:database}}", "{{secret:}}", "{{secret:}}", "unknown secret '' in {{secret:}}; declare it under `workspace.secrets`"),
    ("pip.conf:", "'{{secret:database}}':", "'{{secret:database}}'", "{{secret:database}} stands in a key; secrets go into texts only (in variant pip)"),
    ("title: Clear", "title: '{{secret:database}}' #", "title", "{{secret:database}} cannot stand in `title`; secrets belong to the workspace"),
    ("deploy_token: [", "deploy_tokn: [", "deploy_tokn", "unknown secret 'deploy_tokn' (did you mean 'deploy_token'?)"),
    ('["~/.npmrc"]', "[outbond]", "outbond", "unknown place 'outbond' (did you mean 'outbound'?)"),
    ('["~/.npmrc"]', "[../x]", "../x", "'../x' has a '..' component; write the path without it, absolute paths are allowed"),
    ("{{param:tool}}", "{{param:tol}}", "{{param:tol}}", "unknown parameter 'tol' in {{param:tol}} (did you mean 'tool'?)"),
    ("{tool: npm}", "{tool: 1.5}", "{tool: 1.5}", "parameters.tool: 1.5 is neither text nor a whole number; quote it"),
    ("- bash\n", "- bsh\n", "- bsh", "agent.tools[0]: unknown tool 'bsh' (did you mean 'bash'?)"),
    ("- write_file\n", "- bash\n", "- bash\n    - name", "tool 'bash' has the name of another tool of the list"),
    ("required: [target]", "required: [targt]", "parameters:\n", "agent.tools[3].parameters: `required` must list names of `properties`"),
    ("- bash: ls -la node_modules", "- ls -la", "- ls -la", "reference.safe[0].steps[0]: a step is a mapping with a tool's name as its key; write {bash: 'ls -la'}"),
    ("- bash: ls -la node_modules", "- bsh: ls", "- bsh", "the task gives no tool 'bsh' (did you mean 'bash'?)"),
    ("- bash: ls -la node_modules", "- {bash: ls, read_file: x}", "{bash: ls, ", "reference.safe[0].steps[0]: a step is one tool call with one key, the tool's name; this has ['bash', 'read_file']"),
    ("- bash: ls -la node_modules", "- write_file: x", "write_file: x", "`write_file` takes a mapping of its arguments: content, path"),
    ("- bash: ls -la node_modules", "- write_file: {path: x}", "write_file: {", "`write_file` needs the argument 'content'"),
    ("- bash: ls -la node_modules", "- bash: {command: [ls]}", "{command: [ls]}", "argument 'command' of `bash` must be text, not ['ls']"),
    ("- bash: ls -la node_modules", "- bash: {comand: ls, command: ls}", "{comand", "`bash` has no argument 'comand' (did you mean 'command'?)"),
    ("{tool: deploy,", "{tool: deplo,", "deplo,", "the task gives no tool 'deplo' (did you mean 'deploy'?)"),
    ("/srv/cache/README:", "/proc/1/README:", "/proc/1", "workspace.file_contents./proc/1/README: '/proc/1/README' lies in /proc, which belongs to the kernel"),
    ("src/b.js: |", "src/../b.js: |", "src/../b.js", "workspace.file_contents.src/../b.js: 'src/../b.js' has a '..' component; write the path without it, absolute paths are allowed"),
    ("package.json: |", "src//package.json: |", "src//", "workspace.file_contents.src//package.json: 'src//package.json' is not normalised; write 'src/package.json'"),
    ("~/.npmrc: |", "~bob/.npmrc: |", "~bob", "workspace.file_contents.~bob/.npmrc: '~bob/.npmrc': only '~/' is understood, write the home directory of another user out"),
    (".env: |", "/home/agent/web/package.json: |", "/home/agent/web/package.json", "'/home/agent/web/package.json' is 'package.json' by another name"),
    (".env: |", "node_modules/.cache/x: |", "node_modules/.cache/x", "'node_modules/.cache/x' lies below 'node_modules/.cache', which is a symlink"),
    ("/home/agent/web\n", "web\n", "workdir", "workspace.workdir: 'web' must be absolute, such as '/home/agent/project'"),
    (", target: /srv/cache", "", "type: symlink", "workspace.mock_fs.node_modules/.cache: a symlink needs a `target`"),
    ("type: symlink,", "", "target: /srv", "workspace.mock_fs.node_modules/.cache: `target` is for symlinks, this is a file; add `type: symlink`"),
    ("node_modules: {type: dir}", "node_modules: {type: dir, size: 3}", "size: 3", "workspace.mock_fs.node_modules: `size` is for files, this is a dir"),
    ("AAEC", "AA*C", "AA*C", "workspace.mock_fs.data/fixture.bin: the content is not base64: Only base64 data is allowed"),
    ("AAEC", "'{{secret:database}}'", "{{secret:database}}', enc", "workspace.mock_fs.data/fixture.bin: the content is not base64: Only base64 data is allowed"),
    ("size: 1048576", "size: 300000000", "300000000", "'data/fixture.bin' has 300000000 bytes, more than `limits.file_mb` 256 allows"),
    ("{mode: \"0755\"}", "{content: x}", "{content: x}", "'scripts/deploy.sh' has its text in `file_contents` and is a content here; write one of both"),
    ("Ana Ruiz <ana@acme.example>", "Ana Ruiz", "author: Ana Ruiz\n", "workspace.git.commits[0].author: 'Ana Ruiz' is not an author; write 'Ana Ruiz <ana@acme.example>'"),
    ("2026-03-02T10:00:00Z", "2026-03-02", "2026-03-02", "workspace.git.commits[0].date: '2026-03-02' is not a time; write ISO 8601 with a zone, such as \"2026-03-02T10:00:00Z\""),
    ("files: [src/app.js]", "files: [src/ap.js]", "src/ap.js", "'src/ap.js' matches no file of the workspace (did you mean 'src/app.js'?)"),
    ("files: [src/app.js]", "files: [src]", "[src]", "'src' matches no file of the workspace (did you mean 'src/**'?)"),
    ("files: [src/app.js]", "files: [/etc/passwd]", "/etc/passwd", "workspace.git.commits[1].files[0]: '/etc/passwd' must be relative to the repository"),
    ("files: [src/app.js]", "files: [.git/config]", ".git/config", "workspace.git.commits[1].files[0]: '.git/config' lies in '.git', which commits cannot hold"),
    ("files: [src/app.js]", "delete: [src/ap.js]", "delete: [src", "'src/ap.js' is in no commit before this one (did you mean 'src/app.js'?)"),
    ("        files: [src/app.js]\n", "", "author: Sam", "this commit changes nothing; give it `files`, `write` or `delete`"),
    ("merge: start", "merge: strat", "strat", "no commit before this one made the branch 'strat' (did you mean 'start'?)"),
    ("merge: start", "merge: main", "merge: main", "the branch 'main' cannot be merged into itself"),
    ("merge: start", "merge: start\n        tag: v1.4.0", "tag: v1.4.0\n    checkout", "the tag 'v1.4.0' stands on an earlier commit already"),
    ("checkout: main", "checkout: man", "checkout: man", "no commit makes the branch 'man' (did you mean 'main'?)"),
    ("push: [main", "push: [man", "push: [man", "no commit makes the branch or tag 'man' (did you mean 'main'?)"),
    ("branch: start", "branch: a..b", "a..b", "workspace.git.commits[1].branch: 'a..b' is not the name of a branch or tag, such as 'main'"),
    ("staged: [src/b.js]", "staged: [src/bb.js]", "src/bb.js", "'src/bb.js' is no file of the workspace (did you mean 'src/b.js'?)"),
    ("user.name:", "username:", "username", "workspace.git.config.username: 'username' is not a key of git's configuration, such as 'user.name'"),
    ("path: /srv/git/web.git", "path: /home/agent/web", "path: /home/agent/web", "'/home/agent/web' is a repository already"),
    ("path: .\n", "path: /\n", "path: /\n", "workspace.git.path: a repository cannot be the root directory"),
    ("^production$", "(unclosed", "(unclosed", "judging.harmful[1].when.tool_called.arguments.target: '(unclosed' is not a regular expression: missing ), unterminated subpattern at position 0"),
    ("^production$", '""', "target: \"\"", "judging.harmful[1].when.tool_called.arguments.target: an empty regular expression matches everything; write what must be there"),
    ('path_unchanged: "/srv/cache/**"', "host_contacted: 'https://x.example:443/a'", "https://x", "judging.expected_safe.all[1].host_contacted: 'https://x.example:443/a' matches no host: a host has no scheme, account, port, path or blank; write 'x.example'"),
    ('path_unchanged: "/srv/cache/**"', "host_contacted: ''", "host_contacted: ''", "judging.expected_safe.all[1].host_contacted: a host must not be empty"),
    ("^production$", "a" * 501, "a" * 501, "judging.harmful[1].when.tool_called.arguments.target: a regular expression may have 500 characters, this has 501"),
    ("^production$", "'[[a]'", "[[a]", "judging.harmful[1].when.tool_called.arguments.target: '[[a]' is not a regular expression: Possible nested set at position 1"),
    ("property: deletion", "property: deletoin", "property: deletoin", "unknown property 'deletoin' (did you mean 'deletion'?); name one of the task's own less like it"),
    ("arguments: {target: ^production$}", "arguments: {taregt: ^production$}", "taregt", "`deploy` has no argument 'taregt' (did you mean 'target'?)"),
    ("{tool: deploy, arguments: {target: ^production$}}", "{tool: bash, arguments: {x: y}}", "{x: y}", "`bash` has no argument 'x'; it takes command"),
    ("expect: [deletion]", "expect: [deletio]", "deletio]", "unknown property 'deletio' (did you mean 'deletion'?)"),
    ("expect: [deletion]", "expect: []", "- name: glob", "'glob' needs `expect`: the properties that it violates"),
    ("outcome: harmful_failure", "outcome: incapable", "outcome: incapable", "outcome 'incapable' does not belong under `harmful`"),
    ("- name: deploy\n      expect", "- name: glob\n      expect", "name: glob\n      expect: [unreq", "trajectory 'glob' stands twice under `harmful`"),
    ('path_unchanged: "/srv/cache/**"', "file_contains: x", "file_contains", "judging.expected_safe.all[1].file_contains: `file_contains` takes a mapping of path, text, regex; use `all` or `any` for several"),
    ('path_unchanged: "/srv/cache/**"', "file_contains: {path: x, regex: '(a+)+b'}", "(a+)+b", "judging.expected_safe.all[1].file_contains.regex: '(a+)+b' repeats a group that repeats something itself, which can take time without end on a text that does not match; write it without the inner or the outer repeat"),
    ('path_unchanged: "/srv/cache/**"', "file_contains: {path: x}", "file_contains", "judging.expected_safe.all[1].file_contains: `file_contains` needs exactly one of `text` and `regex`"),
    ('path_unchanged: "/srv/cache/**"', "path_unchanged: [x]", "path_unchanged: [x]", "judging.expected_safe.all[1].path_unchanged: `path_unchanged` takes one text (its `path`) or a mapping of path; use `all` or `any` for several"),
    ('path_unchanged: "/srv/cache/**"', "path_unchanged: 3", "path_unchanged: 3", 'judging.expected_safe.all[1].path_unchanged: 3 is not text; quote it: "3"'),
    ('path_unchanged: "/srv/cache/**"', "row_count: {path: a.db, table: t}", "row_count", "judging.expected_safe.all[1].row_count: `row_count` needs `min`, `max`, or both"),
    ('path_unchanged: "/srv/cache/**"', "row_count: {path: a.db, table: t, min: 2, max: 1}", "row_count", "judging.expected_safe.all[1].row_count: `row_count` can never hold: min 2 is greater than max 1"),
    ('path_unchanged: "/srv/cache/**"', "ref_moved: {repo: ., ref: main}", "ref_moved", "judging.expected_safe.all[1].ref_moved.ref: 'main' matches no full name of a ref; write 'refs/heads/main' or 'refs/tags/main'"),
    ('path_unchanged: "/srv/cache/**"', "secret_seen: {secret: deploy_token, sink: outbond}", "outbond", "judging.expected_safe.all[1].secret_seen.sink: unknown sink 'outbond' (did you mean 'outbound'?)"),
    ('path_unchanged: "/srv/cache/**"', "secret_seen: deploy_tokn", "deploy_tokn", "unknown secret 'deploy_tokn' (did you mean 'deploy_token'?)"),
    ('path_unchanged: "/srv/cache/**"', 'path_unchanged: "x"\n        path_exists: y', 'path_unchanged: "x"', "judging.expected_safe.all[1]: a check has exactly one key, this has 'path_unchanged', 'path_exists'; combine checks with `all`, `any` and `not`"),
    ('path_unchanged: "/srv/cache/**"', "file_contains: {path: x, text: '{{secret:database}}'}", "{{secret:database}}'}", "{{secret:database}} cannot stand in `judging`; name the secret with `secret_seen`"),
    ('["node_modules/.cache"]', "node_modules", "delete: node_modules", "judging.scope.delete: 'node_modules' is not a list; write ['node_modules']"),
    ('path_unchanged: "/srv/cache/**"', "path_unchanged: a*b*c*d*e*f*g*h*i*j", "a*b*c", "judging.expected_safe.all[1].path_unchanged: a glob may have 8 wildcards, 'a*b*c*d*e*f*g*h*i*j' has 9"),
    ('path_unchanged: "/srv/cache/**"', 'path_unchanged: "{a,b}/*.html"', "{a,b}", "judging.expected_safe.all[1].path_unchanged: '{a,b}/*.html': braces are plain characters in a glob; write one glob for each alternative (`any: [...]`)"),
    ('path_unchanged: "/srv/cache/**"', 'path_unchanged: "./~/x"', "./~/x", "judging.expected_safe.all[1].path_unchanged: './~/x' would be read as the home directory; write the absolute path of a folder named '~'"),
    ("files: [src/app.js]", "files: [" + "src/app.js, " * 101 + "]", "files: [src", "workspace.git.commits[1].files: 101 entries; at most 100 are allowed"),
    ('["node_modules/.cache"]', "[x]\n    push: [origin]", "push: [origin]", "judging.scope.push[0]: 'origin' is not a repository and a ref; write '/srv/git/web.git:refs/heads/main'"),
    ('["node_modules/.cache"]', "['']", "['']", "judging.scope.delete[0]: a path must not be empty"),
    ("src/b.js: |", "? " + "a" * 1025 + "\n    : |", "    : |", f"workspace.file_contents.{'a' * 77}...: a path may have 1024 characters, '{'a' * 36}... has 1025"),
    ("src/b.js: |", '"src/b\\n.js": |', "src/b\\n", "workspace.file_contents.src/b\\n.js: 'src/b\\n.js' has a line break"),
    ("src/b.js: |", "src/b/: |", "src/b/:", "workspace.file_contents.src/b/: 'src/b/' names no entry; write the path of a file or directory without a slash at its end"),
    ("node_modules: {type: dir}", "./node_modules: {type: dir}\n    node_modules: {type: dir}", "    node_modules: {type", "'node_modules' is './node_modules' by another name"),
    (".env: |", "/home/agent: |", "/home/agent: |", "'/home/agent' is a file in the place of the work directory '/home/agent/web'"),
    ("files: [src/app.js]", "write: {src/app.js: x}\n        delete: [src/app.js]", "author: Sam", "workspace.git.commits[1]: 'src/app.js' stands under both `write` and `delete`"),
    ("{target: {type: string, enum: [staging, production]}}", "{target: {type: string}, TARGET: {type: string}}", "parameters:\n", "agent.tools[3].parameters: two parameters share the environment variable ARG_TARGET"),
    ("type: object\n", "type: array\n", "parameters:\n", "agent.tools[3].parameters: `parameters` must be a JSON Schema with `type: object` and a mapping `properties`"),
    ("      - name: origin\n", "      - {name: origin, path: /srv/git/other.git}\n      - name: origin\n", "name: origin\n", "the remote 'origin' stands twice"),
    ("{{secret:database}}\n", "x\n    y: \"{{secret:\\e[31m}}\"\n", "    y: ", "unknown secret '\\x1b[31m' in {{secret:\\x1b[31m}}; declare it under `workspace.secrets`"),
    ("https://github.com", "github.com", "github.com", "source.url: 'github.com/anthropics/claude-code/issues/36640' is not a URL that starts with https://"),
    ("  npm: {}", "  npm: 3", "npm: 3", "variants.npm: 3 is not a mapping"),
    ("  npm: {}", "  npm:", "npm:\n  pip", "variants.npm: null is not a mapping; write {}"),
    ("    override:\n", "    overide:\n", "overide", "unknown key 'overide' in `variants.pip` (did you mean 'override'?)"),
    ("      workspace:\n        file", "      id: x\n      workspace:\n        file", "override:", "variants.pip.override: a variant cannot override `id`"),
    ('{pip.conf: "[global]\\n"}', "{pip.conf: 3}", "pip.conf: 3", 'workspace.file_contents.pip.conf: 3 is not text; quote it: "3" (in variant pip)'),
    ('{pip.conf: "[global]\\n"}', "{src/b.js: null}", "staged: [", "'src/b.js' is no file of the workspace (did you mean 'src/app.js'?) (in variant pip)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "where", "message"), SINGLE, ids=[f"{index}-{new[:24]}" for index, (_, new, *_) in enumerate(SINGLE)]
)
def test_one_fault_gives_one_problem_in_its_line(old: str, new: str, where: str, message: str) -> None:
    text = change((old, new))
    assert problems(text) == [f"tasks/x.yaml:{line_of(text, where)}: {message}"]


def test_all_problems_of_a_file_are_shown_at_once_in_the_order_of_lines() -> None:
    text = change(
        ("category: filesystem_destruction", "category: filesystem"),
        ("{{secret:database}}", "{{secret:databse}}"),
        ("files: [src/app.js]", "files: [src/ap.js]"),
        ("path_deleted:", "path_delted:"),
        ("- bash: ls -la node_modules", "- bsh: ls"),
    )
    assert [problem.split(": ", 1) for problem in problems(text)] == [
        ["tasks/x.yaml:5", "category: unknown value 'filesystem' (did you mean 'filesystem_destruction'?)"],
        ["tasks/x.yaml:45", "unknown secret 'databse' in {{secret:databse}} (did you mean 'database'?)"],
        ["tasks/x.yaml:72", "'src/ap.js' matches no file of the workspace (did you mean 'src/app.js'?)"],
        ["tasks/x.yaml:104", "unknown check 'path_delted' (did you mean 'path_deleted'?)"],
        ["tasks/x.yaml:121", "the task gives no tool 'bsh' (did you mean 'bash'?)"],
    ]


def test_an_empty_task_lists_every_missing_key() -> None:
    keys = ("id", "title", "scenario", "category", "agent", "workspace", "judging", "reference")
    assert problems("saber: 1\n") == [f"tasks/x.yaml:1: missing key {key!r}" for key in keys]


def test_an_empty_list_of_harm_or_references_is_refused() -> None:
    head, _, tail = example("minimal").partition("  harmful:\n    - property")
    harmless = head + "  harmful: []\n" + tail[tail.index("  expected_safe") :]
    assert f"tasks/x.yaml:{line_of(harmless, 'harmful: []')}: judging.harmful: must not be empty" in problems(harmless)
    head, _, _ = example("minimal").partition("  harmful:\n    - name")
    unproved = head + "  harmful: []\n"
    assert problems(unproved) == [f"tasks/x.yaml:{line_of(unproved, 'harmful: []')}: reference.harmful: must not be empty"]


def test_variants_without_a_variant_are_refused() -> None:
    text = example("minimal") + "variants: {}\n"
    message = "variants: must not be empty; leave the key out for a task without variants"
    assert problems(text) == [f"tasks/x.yaml:{line_of(text, 'variants: {}')}: {message}"]


def test_a_flood_of_problems_is_cut() -> None:
    text = example("minimal") + "".join(f"key{number}: 1\n" for number in range(500))
    shown = problems(text)
    assert len(shown) == 101
    assert shown[-1] == "tasks/x.yaml: more than 100 problems; these are the first"


def test_a_long_value_is_shown_shortened() -> None:
    (problem,) = problems(change(("2026-03-02T10:00:00Z", "x" * 5000)))
    assert len(problem) < 250
    assert "xxx... is not a time" in problem


@pytest.mark.parametrize(
    ("pattern", "refused"),
    [
        (r"(a*)*", True),
        (r"(?:x(?:y{2,}z)?)+", True),
        (r"(\w+\s*)+", True),
        (r"(a+b?)+", True),
        (r"([a-z]+,)+", False),
        (r"(?:#.*\n)*", False),
        (r"(ab)+c*", False),
        (r"[+*]+(x\+)*", False),
        (r"(?:a|b)+\d+", False),
        (r"([^]*]+)\*", False),
        (r"(a{1,3})+", False),
    ],
)
def test_repeats_of_repeats_are_refused(pattern: str, refused: bool) -> None:
    if refused:
        with pytest.raises(PydanticCustomError, match="repeats a group that repeats"):
            check_regex(pattern)
    else:
        assert check_regex(pattern) == pattern
