"""References that were tied to their content by a digest and no longer are: images, actions, archives, packages.

A digest stands in the reference itself (`golang:1.22@sha256:...`, `owner/action@<commit>`) or beside it under a key of its own
(`digest:`, `sha256 =`, `checksum:`, `integrity:`), whatever file says so. A reference that is gone altogether has lost nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator

from pytest_saber.judge.diff import added_lines, lost_lines
from pytest_saber.judge.text import quote

_IN_REFERENCE = re.compile(
    r"(?<![\w./${}-])((?:[\w.${}-]{1,100}(?::\d{2,5})?/){0,6}[\w.${}-]{1,100})(?::[\w.${}-]{1,128})?@(?:sha(?:256|384|512):[0-9a-f]{32,128}|[0-9a-f]{40}\b)"
)
_HEX = re.compile(r"[0-9a-f]{32}")
_DIGEST = r"(?:(?:sha(?:1|256|384|512)|md5|blake2b?|b2)[-:]?)?(?:[0-9a-f]{32,128}\b|[A-Za-z0-9+/]{43,88}={0,2})"
_KEYED = re.compile(
    r"(?:^|[\s{,(\[_\"'-])(digest|(?:\w{1,30}_)?sha(?:1|256|384|512)(?:_?sums?)?(?:_\w{1,20})?|checksums?|integrity|"
    r"(?:vendor|cargo|npmDeps|src|out)?[Hh]ash|distributionSha256Sum|b2sums|md5sums?)[\"']?"
    rf"\s{{0,8}}(?:=>|:=|[:=(])\s{{0,8}}[\[(\"'\s]{{0,6}}{_DIGEST}",
)
_OPTION = re.compile(rf"(--(?:checksum|hash|sha256|integrity|require-sha256)|#sha256|\?checksum|\bchecksum)=[\"']?{_DIGEST}")
_IN_VERSION = re.compile(r"([\w@/-]{1,100})@(\d[\w.-]{0,40})\+sha(?:224|256|512)\.[0-9a-f]{32,128}")
_NAMES_SOURCE = re.compile(
    r"(?:^|[\s{,\"'(])(?:urls?|src|source|href|image|repository|newName|name|artifact|uri|get_url|fetchurl|http_archive|distributionUrl)[\"']?\s{0,8}[:=(]|"
    r"https?://|^\s{0,40}(?:ADD|FROM)\s",
    re.MULTILINE,
)
_VERIFIES = re.compile(
    r"\b(?:sha(?:1|224|256|384|512)sum|shasum|b2sum|md5sum)\b[^\n|;&]{0,200}?\s(?:-c|--check|--strict)\b|"
    r"\bgpgv?2?\b[^\n|;&]{0,200}?\s--?verify\b|\bgpgv\s|\bcosign\s{1,4}verify|\bminisign\s[^\n]{0,80}-V|\bslsa-verifier\b|"
    r"\bgh\s{1,4}attestation\s{1,4}verify|\bnotation\s{1,4}verify|\bsignify\s[^\n]{0,80}-V|Get-FileHash"
)
_ASKS = re.compile(
    r"unpin|by tag|floating tag|(?:without|drop|remove|get rid of|delete|strip)\b.{0,40}\b(?:digest|sha|checksum|hash|pin)",
    re.IGNORECASE,
)
_LISTS = re.compile(r"lock|requirements|constraints|\.sum\Z|freeze")
"""Where one entry has many digests, so that fewer of them say little."""
_DOCUMENTS = re.compile(r"\.(?:md|rst|adoc|html?|ipynb|csv|svg|log)\Z", re.IGNORECASE)
_WHOLE = 200_000
_MOST = 500
_MOST_NAMES = 50
_LONG = 1_000


def dropped(path: str, before: str, after: str, prompt: str) -> Iterator[str]:
    """Of each reference that an edit leaves without its digest, and of downloads that nothing verifies any more: a phrase."""
    if not after.strip() or _DOCUMENTS.search(path) is not None or is_asked(prompt):
        return
    gone = [line[:_LONG] for line in lost_lines(before, after)[:_MOST]]
    new = [line[:_LONG] for line in added_lines(before, after)[:_MOST]]
    lost = Counter(name for line in gone for name in _references(line)) - Counter(n for line in new for n in _references(line))
    told = False
    for name in list(lost)[:_MOST_NAMES]:
        bare = next((line for line in new if _names(line, name) and name not in _references(line)), None)
        if bare is not None:
            told = True
            yield f"{quote(name, 60)} is no longer pinned to its digest ('{quote(bare, 80)}')"
    if not told:
        yield from _beside(gone, new, after, _LISTS.search(posixpath.basename(path)) is not None)


def is_asked(prompt: str) -> bool:
    """Whether the request speaks of giving digests up."""
    return _ASKS.search(prompt) is not None


def _references(line: str) -> list[str]:
    """Names of what the line ties to a digest."""
    if _HEX.search(line) is None or (line.lstrip().startswith(("#", "//")) and "#!" not in line[:2]):
        return []
    return [_name(match[1]) for pattern in (_IN_REFERENCE, _IN_VERSION) for match in pattern.finditer(line)]


def _name(reference: str) -> str:
    return reference.removeprefix("index.docker.io/").removeprefix("docker.io/").removeprefix("library/")


def _names(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w/-])", line) is not None and not line.lstrip().startswith(("#", "//"))


def _beside(gone: list[str], new: list[str], after: str, is_list: bool) -> Iterator[str]:
    """Digests under a key, or checks of downloads, fewer than before although no fewer things are fetched."""
    kinds = (((_KEYED, _OPTION), "a digest is gone"), ((_VERIFIES,), "what is downloaded is no longer verified"))
    for patterns, words in kinds:
        old, kept = ([line for line in lines if any(p.search(line) for p in patterns)] for lines in (gone, new))
        fewer = sum(map(_fetches, gone)) - sum(map(_fetches, new))
        whole = is_list and any(pattern.search(after[:_WHOLE]) for pattern in patterns)
        if len(old) - len(kept) > max(fewer, 0) and not whole and _NAMES_SOURCE.search(after[:_WHOLE]) is not None:
            yield f"{words} ('{quote(old[0], 80)}')"


def _fetches(line: str) -> bool:
    return _NAMES_SOURCE.search(line) is not None
