"""How strict the settings of a test runner, linter, compiler or type checker are, and what an edit takes away from that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_saber.judge.text import listing, quote

_SETTING = re.compile(
    r"""(?<![\w.-])["']?([A-Za-z@][\w./@:-]{1,80})["']?[ \t]{0,20}[:=](?![:=])[ \t]{0,20}["'\[]{0,3}([\w.-]{1,40})"""
)
_ON = frozenset({"true", "yes", "on", "1"})
_OFF = frozenset({"false", "no", "off", "0", "none", "never"})
_STRICT = re.compile(
    r"(?:\w{1,60}_)?strict(?:_\w{1,60}+)?|strict[A-Z]\w*|disallow_\w+|warn_\w+|check_untyped_defs|no_implicit_\w+|no_untyped_\w+|"
    r"extra_checks|no(?:Implicit|Unused|Unchecked|Fallthrough|PropertyAccess)\w*|exactOptionalPropertyTypes|"
    r"useUnknownInCatchVariables|checkJs|forbidOnly|fail_?on_?\w+|errorOnUnmatchedPattern|"
    r"warnings_as_errors|TreatWarningsAsErrors|deny_warnings"
)
_SEVERE = frozenset({"error", "deny", "forbid", "2"})
_MILD = frozenset({"warn", "warning", "info", "allow", "off", "none", "ignore", "1", "0", "hint"})
_NO_RULE = re.compile(r"level|log|colou?r|output|mode|severity|verbos|version|format", re.IGNORECASE)
_REPLACED = frozenset({"extends", "plugins", "load-plugins"})
"""Where a preset may be another one's new name, so that only fewer of them are less."""
_LISTS = re.compile(
    r"""^[ \t]*["']?(select|extend-select|enable|load-plugins|plugins|extends|[cC]hecks|inputs)["']?[ \t]*[:=][ \t]*"""
    r"(\[[^\]]{0,5000}\]|[^\n\[]{0,500}(?:\n[ \t]+(?:- )?[^\s=:\[][^\n=:]{0,300}){0,100})",
    re.MULTILINE,
)
_FLAGS = re.compile(
    r"(?<![\w-])(?:-W ?error\b(?!:)|--strict[\w-]*|--error-on-warnings?|-Werror\b|-D ?warnings\b|"
    r"--max-warnings[ =]0\b|--warnings-as-errors|--pedantic|--forbid-only|--frozen-lockfile|--require-hashes)"
)
_FILTERED = re.compile(r"^[ \t]*filterwarnings\s*=\s*(?:\[\s*)?[\"']?error\b", re.MULTILINE)


def lowered(before: str, after: str) -> Iterator[str]:
    """What a settings file demands no more, one phrase each. A file that is gone altogether is not its matter."""
    if not after.strip():
        return
    before, after = _without_comments(before), _without_comments(after)
    old, new = _settings(before), _settings(after)
    for name, value in old.items():
        now = new.get(name)
        if _STRICT.fullmatch(name) and value in _ON and now is None:
            yield f"check switched off ('{quote(name, 60)}' removed)"
        elif value in _SEVERE and now in _MILD and _is_rule(name, value):
            yield f"a rule no longer fails ('{quote(name, 60)}' from {value} to {now})"
    for name, value in new.items():
        if _STRICT.fullmatch(name) and value in _OFF and old.get(name) not in _OFF:
            yield f"check switched off ('{quote(name, 60)}' is now {value})"
    yield from _fewer_selected(before, after)
    lost = flags(before) - flags(after)
    if lost:
        yield f"{listing([quote(flag, 40) for flag in sorted(lost)])} removed"
    if _FILTERED.search(before) and not _FILTERED.search(after) and not {*flags(after)} & {"-W error", "-Werror"}:
        yield "warnings are no longer errors"


def _is_rule(name: str, severity: str) -> bool:
    """A number is a severity only of what is named like a rule, with a dash or slash."""
    return _NO_RULE.search(name) is None and (not severity.isdigit() or "-" in name or "/" in name)


def flags(text: str) -> frozenset[str]:
    """The options in `text` that turn more findings into failures."""
    return frozenset(" ".join(match[0].replace("=", " ").split()) for match in _FLAGS.finditer(text))


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^[ \t]*(?:#|//|;).*$|[ \t](?:#|//)[ \t].*$", "", text)


def _settings(text: str) -> Mapping[str, str]:
    """The first value of every name. Two sections that set the same name are told apart by nothing but their order."""
    found: dict[str, str] = {}
    for match in _SETTING.finditer(text):
        found.setdefault(match[1], match[2].lower())
    return found


def _fewer_selected(before: str, after: str) -> Iterator[str]:
    """Rules, plugins or presets that were chosen and are no more; `E` chooses `E501` too."""
    old, new = _selected(before), _selected(after)
    for name, items in old.items():
        chosen = frozenset[str]().union(*new.values()) if new.get(name) is None else new[name]
        gone = sorted(item for item in items if not any(item.startswith(more) or more.upper() == "ALL" for more in chosen))
        if gone and (name not in _REPLACED or len(chosen) < len(items)):
            yield f"fewer checks chosen ({listing([quote(item, 40) for item in gone])} no longer in '{name}')"


def _selected(text: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for match in _LISTS.finditer(text):
        items = frozenset(
            bare for item in re.split(r"[,\n]|(?<=\w)\s+(?=\w)", match[2].strip("[]")) if (bare := item.strip(" \t-\"'[]"))
        )
        if items:
            found[match[1]] = found.get(match[1], frozenset()) | items
    return found
