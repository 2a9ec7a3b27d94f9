"""Shell scripts that put a repository into the state in which git calls a hook, and that call it.

Which hooks git calls, with what, was seen with git 2.39; see also githooks(5).
"""

from __future__ import annotations

import shlex

from pytest_saber.sandbox.hook_questions import Inquiry, Question

BY_GIT = "git makes it"
"""Printed where git makes a commit's content without help."""
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The system's own programs: the run may have left another git in the user's folders."""
_QUIET = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false"


def word(text: str) -> str:
    """Quoted for the shell."""
    return shlex.quote(text)


def make_ready(inquiry: Inquiry, question: Question, ref: str, hooks: str, *, with_files: bool, restored: bool) -> str:
    """The index and the work tree (`with_files`) hold the commit, HEAD its parent, on the branch `ref`.

    `hooks` is a copy of the hooks as they were; `restored` puts it back, as the commit may hold another version of them.
    """
    lines = [f"set -e; export {_PATH}; cd -- {word(inquiry.root)}; rm -f .git/index.lock .git/MERGE_HEAD .git/MERGE_MSG"]
    commit, parent = word(question.commit), word(question.parent) if question.parent else ""
    branch = ref if question.push is None else ""
    if branch.startswith("refs/heads/"):
        lines.append(f"git symbolic-ref HEAD {word(branch)}")
        lines.append(f"git update-ref {word(branch)} {parent}" if parent else f"git update-ref -d {word(branch)}")
    else:
        lines.append(f"git update-ref --no-deref HEAD {parent or commit}")
    lines.append(f"git read-tree --reset {'-u ' if with_files else ''}{commit}")
    if restored:
        folder = word(inquiry.place(""))
        lines.append(f"if [ -d {hooks} ]; then rm -rf {folder}; cp -a {hooks} {folder}; fi")
    lines.append(f"git cat-file commit {commit} | sed '1,/^$/d' > .git/COMMIT_EDITMSG")
    if question.merged and question.hook != "pre-merge-commit":
        lines.append(f"printf '%s\\n' {' '.join(map(word, question.merged))} > .git/MERGE_HEAD")
        lines.append("cp .git/COMMIT_EDITMSG .git/MERGE_MSG")
    return "\n".join(lines)


def call(inquiry: Inquiry, question: Question) -> str:
    """The hook with the arguments, input and environment that git gives it."""
    lines = [f"cd -- {word(inquiry.root)}"]
    hook = word(f"{inquiry.folder.rstrip('/')}/{question.hook}")
    if question.push is not None:
        remote, address, ref, new, old = question.push
        local = "(delete)" if not new.strip("0") else ref
        pushed = word(f"{local} {new} {ref} {old}")
        return "\n".join([*lines, f"printf '%s\\n' {pushed} | {hook} {word(remote)} {word(address)}"])
    for name, form in (("NAME", "%an"), ("EMAIL", "%ae"), ("DATE", "@%at")):
        lines.append(f'export GIT_AUTHOR_{name}="$({_PATH} git show -s --format={form} {word(question.commit)})"')
    lines.append('export GIT_INDEX_FILE="$PWD/.git/index" GIT_EDITOR=: GIT_PREFIX=')
    message = " .git/COMMIT_EDITMSG" if question.hook == "commit-msg" else ""
    return "\n".join([*lines, f"exec {hook}{message}"])


def merged_by_git(inquiry: Inquiry, question: Question) -> str:
    """Prints BY_GIT where git alone makes the merge, with some strategy: it then asks `pre-merge-commit`, else `pre-commit`."""
    theirs = " ".join(map(word, question.merged))
    ways = ("", "-X ours", "-X theirs", "-s ours", "-s resolve")
    return _tried(inquiry, question, [f"merge -q --no-ff --no-commit {way} {theirs}" for way in ways])


def replayed_by_git(inquiry: Inquiry, question: Question) -> str:
    """Prints BY_GIT where git alone makes the commit from one of `question.originals`: it then asks none of our hooks."""
    ways = [f"{how} -n -m 1 {word(oid)}" for how, oid in question.originals]
    ways += [f"{how} -n {word(oid)}" for how, oid in question.originals]
    return _tried(inquiry, question, ways)


def _tried(inquiry: Inquiry, question: Question, ways: list[str]) -> str:
    """In a clone that has the repository's settings but none of its hooks."""
    parent, commit = word(question.parent), word(question.commit)
    lines = [
        f"set -e; export {_PATH}; cd -- {word(inquiry.root)}; wanted=$(git rev-parse {commit}^{{tree}})",
        f"try=$(mktemp -d); {_QUIET} clone -qns . $try; cp .git/config $try/.git/config; cd $try",
        "git config --unset-all core.worktree || true",
        "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x GIT_EDITOR=:",
    ]
    for way in ways:
        lines.append(f"{_QUIET} checkout -qf --detach {parent}; {_QUIET} reset -q --hard; {_QUIET} clean -qfdx")
        lines.append(
            f"if {_QUIET} {way} >/dev/null 2>&1 && [ $(git write-tree) = $wanted ]; then echo {word(BY_GIT)}; exit 0; fi"
        )
    return "\n".join(lines)
