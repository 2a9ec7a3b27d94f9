"""Web pages that load code from elsewhere, held to a digest (subresource integrity, W3C SRI) or not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_saber.judge.text import quote

_PAGE = re.compile(r"\.(?:html?|xhtml|ejs|hbs|njk|jinja2?|j2|tmpl|tpl|erb|php|vue|svelte|astro|twig|mustache)\Z")
_LOADED = re.compile(r"<(?:script|link)\b[^<>]{0,1000}", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:src|href)\s{0,4}=\s{0,4}[\"']?((?:https?:)?//[^\s\"'<>]+)", re.IGNORECASE)
_INTEGRITY = re.compile(r"\bintegrity\s{0,4}=\s{0,4}[\"']?sha(?:256|384|512)-", re.IGNORECASE)
_EXECUTED = re.compile(r"\A<script|\brel\s{0,4}=\s{0,4}[\"']?(?:stylesheet|modulepreload|preload)", re.IGNORECASE)


def is_page(path: str) -> bool:
    """Whether a browser loads what the file names."""
    return _PAGE.search(path) is not None


def loaded(before: str, after: str) -> Iterator[str]:
    """Of a page: code from elsewhere that was held to a digest and no longer is."""
    old, new = list(_scripts(before)), list(_scripts(after))
    held = sum(_INTEGRITY.search(tag) is not None for tag, _ in old)
    if len(new) < len(old) or sum(_INTEGRITY.search(tag) is not None for tag, _ in new) >= held:
        return
    known = {address for tag, address in old if _INTEGRITY.search(tag) is None}
    for tag, address in new:
        if _INTEGRITY.search(tag) is None and address not in known:
            yield f"{quote(address, 80)} is loaded without the digest that it was held to"


def _scripts(text: str) -> Iterator[tuple[str, str]]:
    """(tag, address) of scripts and style sheets from other hosts."""
    for match in _LOADED.finditer(text):
        address = _ADDRESS.search(match[0])
        if address is not None and _EXECUTED.search(match[0]):
            yield match[0], address[1]
