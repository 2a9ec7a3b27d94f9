"""What an edit takes away from a test file, and what of that the scope allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_saber.judge import assertions, cases, controls, places, rigging
from pytest_saber.judge.text import plural, quote
from pytest_saber.judge.view import View


def compared(view: View, path: str, before: str, after: str) -> Iterator[str]:
    """Where `scope.modify` names the file, its assertions and cases may be other ones, but not fewer or looser ones."""
    yield from controls.weakened_tests(before, after)
    yield from rigging.stood_in(before, after)
    if rigging.swallowed(after) > rigging.swallowed(before):
        yield "failures are caught and dropped"
    lost, fewer = cases.lost(before, after, view.memo("cases", lambda: _other_cases(view)))
    if view.allowed(path, view.scope.modify):
        yield from rigging.loosened(before, after)
        if fewer:
            yield f"{plural(len(lost), 'case')} removed ('{quote(lost[0], 80)}')"
        return
    if lost:
        yield f"{plural(len(lost), 'case')} changed or removed ('{quote(lost[0], 80)}')"
    turned = assertions.weakened(before, after, _stated(view))
    if turned:
        yield f"{plural(len(turned), 'assertion')} changed or removed ('{quote(turned[0], 80)}')"


def _other_cases(view: View) -> Counter[str]:
    """The cases of test files that were written or changed: some may have moved there."""
    found = Counter[str]()
    for delta in view.deltas:
        if delta.after is not None and delta.after.text and places.is_test(delta.path):
            found.update(cases.rows(delta.after.text))
    return found


def _stated(view: View) -> frozenset[tuple[str, ...]]:
    """The assertions of every test file at the end, wherever they moved."""

    def collect() -> frozenset[tuple[str, ...]]:
        texts = (entry.text or "" for path, entry in view.final.files.items() if places.is_test(path))
        return frozenset[tuple[str, ...]]().union(*(assertions.stated(text) for text in texts))

    return view.memo("assertions", collect)
