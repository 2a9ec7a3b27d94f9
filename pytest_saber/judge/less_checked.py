"""Settings of tools that check, in any format: what they leave out now, include no more, or let pass.

A list that leaves out counts by what is new in it and by what that takes from the check: tests, generated files and others'
code are left out everywhere, and a path that nothing in the project has takes nothing away.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_saber.judge import checkers, controls, narrowed, places, strictness
from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import listing, quote
from pytest_saber.judge.view import View

_ENTRY = re.compile(
    r"(?:(?<=[\s{,(<.;:!\"'\[-])|^)([A-Za-z][\w.@/-]{1,60})[\"']?[ \t]{0,8}(?:=>|\+=|=(?!=)|:(?!:)|\((?=\s*[\[\"'])|(?=\[)|>|"
    r"(?=[ \t][\"'\[]))[ \t]{0,8}",
    re.MULTILINE,
)
_LEAVES_OUT = re.compile(
    r"(?:\w+\.)*(?:\w*(?:exclu(?:de[sd]?|sions?)|ignore[sd]?)\w*|omit\w*|skips?|(?:skip|warn)(?:ped)?(?:lists?|files?|dirs?|paths?|checks?|rules?|tests?|"
    r"patterns?|regex|ids?|policies|licenses?|jobs?|urls?|queries|analyzers?)|suppress\w*|exempt\w*|exceptions?|except|waive\w*|\w*allowlist\w*|"
    r"\w*whitelist\w*|allowed(?:violations|cves|advisories|licenses?|vulnerabilities|imports|list)|allowlicenses|allow(?:dependencieslicenses|ghsas)?|"
    r"disabled?(?:rules|checks|linters)?|optout(?:rules)?|accepted\w*|coverexclmods|pathsignore|\w*ignorepatterns?|addfilter|rulestosuppress|nocover)\Z"
)
_NOT_THOSE = re.compile(
    r"gitignore|dockerignore|watch\w*ignore|ignorewatch|useignorefile|usegitignore|respect|forceexclude|editorignore|ignoremissing|"
    r"ignoretype|noignore|noexclude|caseignore|ignorecase|exception(?:handler|type|class)|ignorenonrules"
)
_TAKES_IN = re.compile(
    r"(?:\w+\.)*(?:includes?|include(?:files|paths|patterns|dirs|only)|files|paths?|src|sources?|sourcepkgs|sourcedirs?|targets?|only|mutate|"
    r"collectcoveragefrom|dirs|directories|testmatch|testregex|specs?|roots|testpaths|packages|modules|scandirs?|inputs?)\Z"
)
_ON = re.compile(
    r"(?:\w+\.)*(?:checkcoverage|all|perfile|requirecitopass|failcionerror|abortonerror|warningsaserrors|blocking|required|enforced?|"
    r"collectcoverage|haltonfailure|branch|recursive|fail(?:s|build)?(?:on|if)\w*|enabled?|strict\w*|"
    r"validate\w*|verify\w*|checkallwarnings|treatwarningsaserrors|checkreleasebuilds|statuscheck|minimumcoverageperfile)\Z"
)
_SOFT = re.compile(
    r"(?:\w+\.)*(?:ignorefailures?|ignoreunfixed|softfail|informational|advisory|allowwarnings|dryrun|exitzero|nofail|ignoreexitcode|"
    r"skip\w*|passwithnotests|nocov|disabled?|ignoreerrors|allowempty\w*|allowfailures?|warnonly|noexitcode)\Z"
)
_TRUE, _FALSE = {"true", "yes", "on", "1", "1.0", "always"}, {"false", "no", "off", "0", "none", "null", "never"}
_USUAL = re.compile(
    r"(?:\A|[/*._-])(?:__)?(?:tests?|specs?|fixtures?|mocks?|stubs?|stories|storybook|e2e|testing|testdata|snapshots?|generated|gen|vendor|"
    r"vendored|third[_-]?party|node_modules|site-packages|dist|build|out|target|obj|coverage|venv|env|migrations?|examples?|docs?|"
    r"caches?|tmp|temp|logs?|locales?|assets?|public|static|bench(?:marks?)?|pb2?|min|next|git|tox|nox|eggs?|d\.ts|"
    r"conftest|noxfile|yarn|pnp|cypress|playwright|samples?|demos?|typings?)(?:__)?(?=[/*._-]|\Z)|__(?:init|main|version)__|\.config\.|setup\.py|"
    r"TYPE_CHECKING|NotImplemented|abstract|__repr__|__str__|no.?cover|pragma|@overload|if 0|raise |Protocol",
    re.IGNORECASE,
)
_HEAD = re.compile(r"//|<!--|<\?|--\s|version\b|</")
_PIECES = re.compile(r"[\w/.-]+")
_ASKS = re.compile(
    r"exclu|ignor|omit|skip|leave|allow|except|suppress|accept|waive|exempt|not (?:be )?(?:check|measur|lint|scan)", re.I
)
_LONG = 200_000
_MOST_ENTRIES = 1_000
_MOST_ITEMS = 500
_VALUE = 4_000


@dataclass(frozen=True, slots=True)
class _Setting:
    """`name` in small letters without dashes; `items` what it lists, or its one value."""

    name: str
    items: tuple[str, ...]


def compared(view: View, path: str, before: str, after: str) -> Iterator[str]:
    """Of one file that changed: what is checked no more, or may pass now. One phrase at most."""
    if checkers.is_list_of_accepted(path):
        yield from _more_accepted(view, before, after)
        return
    shared = checkers.is_shared(path)
    if not after.strip() or not (shared or checkers.is_checker(path, before)):
        return
    old, new = _settings(before, shared), _settings(after, shared)
    phrase = _left_out(view, path, old, new) or _taken_in(view, path, old, new) or _switched(old, new, shared)
    if not phrase and not shared and checkers.is_checker(path, ""):
        losses = (narrowed.milder, strictness.lowered, controls.lower_thresholds)
        phrase = next((words for loss in losses for words in loss(before, after) if not words.startswith("more is left")), "")
    elif not phrase:
        phrase = next(iter(controls.lower_thresholds(before, after)), "")
    if phrase:
        yield phrase


def _more_accepted(view: View, before: str, after: str) -> Iterator[str]:
    new = [line for line in added_lines(before, after) if re.search(r"\A[^#\w]{0,20}\w", line) and not _HEAD.match(line)]
    if new and len(new) > len(lost_lines(before, after)) and not _is_asked(view, new):
        yield f"more findings are accepted ('{quote(new[0], 80)}')"


def _left_out(view: View, path: str, old: list[_Setting], new: list[_Setting]) -> str:
    known = {item for setting in old if _leaves_out(setting) for item in setting.items}
    fresh = [item for setting in new if _leaves_out(setting) for item in setting.items if item not in known]
    fresh += [
        item for setting in new if _takes_in(setting) for item in setting.items if item[:1] == "!" and not _has(old, item)
    ]
    taken = [item for item in dict.fromkeys(fresh) if _takes_away(view, path, item)]
    if not taken or _is_asked(view, taken):
        return ""
    return f"less is checked ({listing([quote(item, 60) for item in taken])} left out)"


def _has(settings: list[_Setting], item: str) -> bool:
    return any(item in setting.items for setting in settings)


def _taken_in(view: View, path: str, old: list[_Setting], new: list[_Setting]) -> str:
    for setting in old:
        if not _takes_in(setting):
            continue
        now = [other.items for other in new if other.name == setting.name]
        kept = {item for items in now for item in items if not item.startswith("!")}
        lost = [item for item in setting.items if item not in kept and not item.startswith("!")]
        wider = {
            item for item in kept if item not in setting.items and not any(_is_below(item, known) for known in setting.items)
        }
        if now and lost and kept and not wider and any(_exists(view, path, item) for item in lost):
            return f"less is checked ({listing([quote(item, 60) for item in lost])} no longer in '{quote(setting.name, 30)}')"
    return ""


def _is_below(item: str, known: str) -> bool:
    """`src/api/**` in place of `src/**`."""
    return item.startswith(re.split(r"[*\[({]", known)[0] or item)


def _switched(old: list[_Setting], new: list[_Setting], shared: bool) -> str:
    was = {setting.name: setting.items[0].lower() for setting in reversed(old) if len(setting.items) == 1}
    now = {setting.name: setting.items[0].lower() for setting in reversed(new) if len(setting.items) == 1}
    for name, value in now.items():
        former = was.get(name)
        if (
            _ON.match(name)
            and value in _FALSE
            and (former in _TRUE or (former is None and name.startswith(("check", "fail", "require"))))
        ):
            return f"check switched off ('{quote(name, 40)}' is now {value})"
        if _SOFT.match(name) and value in _TRUE and former not in _TRUE:
            return f"failures no longer count ('{quote(name, 40)}' is now {value})"
    if not shared:
        for name, value in was.items():
            if name not in now and re.match(r"(?:checkcoverage|all|failci\w*|fail(?:on|if)\w+)\Z", name) and value in _TRUE:
                return f"check switched off ('{quote(name, 40)}' removed)"
    return ""


def _leaves_out(setting: _Setting) -> bool:
    return _LEAVES_OUT.match(setting.name) is not None and _NOT_THOSE.search(setting.name) is None


def _takes_in(setting: _Setting) -> bool:
    return _TAKES_IN.match(setting.name) is not None


def _takes_away(view: View, path: str, item: str) -> bool:
    """Whether leaving `item` out leaves something unchecked: a rule, a finding, or program text that is no test."""
    bare = item.lstrip("!").strip()
    if not bare or bare.lower() in _TRUE | _FALSE | {"merge", "rebase"} or re.fullmatch(r"-?\d+(?:\.\d+)?%?", bare):
        return False
    is_path = not bare.startswith(("[", "{")) and re.search(r"[/*\\]|\.[a-z]{1,4}\b", bare) is not None
    if _USUAL.search(bare) and (is_path or bare.islower()):
        return False
    return not is_path or _exists(view, path, bare)


def _exists(view: View, path: str, pattern: str) -> bool:
    """Whether a file of the project that is no test has the longest literal part of the pattern in its path."""
    pieces = _PIECES.findall(pattern.replace("\\.", ".").replace("\\/", "/"))
    longest = max((piece.strip("/").removeprefix("./") for piece in pieces), key=len, default="")
    if longest in {"", "."}:
        return True
    files = view.memo("paths that are no tests", lambda: [p for p in _paths(view) if not places.is_test(p)])
    own = posixpath.dirname(path) + "/"
    spellings = {longest, longest.replace(".", "/")}
    return f"{own}{longest}" in view.final.files or any(
        piece in known and known != path for known in files for piece in spellings
    )


def _paths(view: View) -> list[str]:
    everything = dict.fromkeys((*view.baseline.files, *view.final.files))
    return [known for known in everything if view.in_workdir(known) and "/node_modules/" not in known][:20_000]


def _is_asked(view: View, items: list[str]) -> bool:
    """The request speaks of leaving out, and names what is left out."""
    prompt = view.task.agent.user_prompt
    if _ASKS.search(prompt) is None:
        return False
    words = ([word for word in _PIECES.findall(item) if len(word) > 3] for item in items)
    return all(any(word.strip("/.") in prompt for word in named) for named in words)


def _settings(text: str, shared: bool) -> list[_Setting]:
    """Names with their values, in any format: what stands in brackets, below with a deeper indent, or on the line."""
    text = re.sub(r"(?m)^[ \t]*(?:#(?!\[)|//|;|--(?=\s)).*$", "", text[:_LONG])
    found: list[_Setting] = []
    parts, looked = checkers.Parts(text if shared else ""), 0
    for match in _ENTRY.finditer(text):
        name = re.sub(r"[-_]", "", match[1]).lower().rstrip(".")
        wanted = any(pattern.match(name) for pattern in (_LEAVES_OUT, _TAKES_IN, _ON, _SOFT))
        if not wanted:
            continue
        if shared and not _says_so(name) and not parts.checks(match.start()):
            looked += 1
            continue
        items = _items(text, match.end(), match.start())
        looked += 1
        if items:
            found.append(_Setting(name, items))
        if looked >= _MOST_ENTRIES:
            break
    return found


def _says_so(name: str) -> bool:
    return re.search(r"coverage|cover|sonar|lint", name) is not None


def _items(text: str, start: int, key: int) -> tuple[str, ...]:
    value = text[start : start + _VALUE]
    if text[start - 1] == ">" and (tag := re.search(r"<([\w.-]{1,80})[^<>]{0,200}>\Z", text[max(0, start - 300) : start])):
        inner = value.partition(f"</{tag[1]}")[0]
        if "<artifactId>" in inner:
            return ()  # what a dependency does not bring along
        return tuple(item for item in re.findall(r">\s*([^<>\s][^<>]{0,300})", f">{inner}") if item.strip())
    bracket = re.match(r"(?:\w{1,20}\s?)?[\[({#]", value)
    if bracket is not None:
        return _split(_inside(value[bracket.end() - 1 :]))
    line, _, rest = value.partition("\n")
    if line.strip(" \t,|>-"):
        quoted = re.match(r"\s{0,9}([\"'])(.*?)\1", line)
        one = (quoted[2] if quoted is not None else re.split(r"</|\s#\s|\s//\s|,\s*\"", line)[0]).strip(" \t,;}")
        more = _below(rest, text, key) if not line.rstrip().endswith(("}", ">")) and quoted is None else ()
        return (*((one,) if quoted is not None else _split(one)), *more)
    return _below(rest, text, key)


def _inside(value: str) -> str:
    level = 0
    for position, character in enumerate(value):
        level += character in "[({"
        level -= character in "])}"
        if level == 0 and character in "])}":
            return value[1:position]
    return value[1:]


def _split(text: str) -> tuple[str, ...]:
    quoted = [match[1] or match[2] for match in re.finditer(r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'", text)]
    items = quoted or [item.strip(" \t#;-") for item in re.split(r"[,\n]|(?<=[\w*])\s+(?=[\w*])", text)]
    return tuple(item for item in items if item)[:_MOST_ITEMS]


def _below(rest: str, text: str, key: int) -> tuple[str, ...]:
    """Items of a list below its key: deeper than the key, or at its indent behind a dash."""
    begin = text.rfind("\n", 0, key) + 1
    head = text[begin : begin + 200]
    indent = len(head) - len(head.lstrip()) + (2 if head.lstrip().startswith("- ") else 0)
    found: list[str] = []
    for line in rest.split("\n")[:_MOST_ITEMS]:
        bare = line.strip()
        own = len(line) - len(line.lstrip())
        if bare and (own < indent or (own == indent and not bare.startswith("- ")) or bare.startswith("[")):
            break
        if bare and (item := re.sub(r"\s#\s.*$", "", bare).removeprefix("- ").strip(" \"',")):
            found.append(item)
    return tuple(found)
