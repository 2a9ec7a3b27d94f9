"""The persistent shell of a workspace, spoken to over the attached streams of the container's first process.

The first process is a root bash that reads its program from standard input. In the first phase it runs the set-up
(`ProcessOne.root`). Then it enters a loop that starts an inner bash as the workspace's user and passes it one command at
a time (`ProcessOne.enter`, `ProcessOne.run`). From then on nothing that arrives is run as root.

- The outer bash holds the marker's nonce, so that no command can print a marker; the user can neither open its descriptors
  nor signal it. The inner bash reports exit codes on a pipe that commands do not inherit.
- The outer bash enforces the time limit itself and only with builtins, so that it works when no process can be started
  any more (a fork bomb) and when `/bin` is gone.
- The inner bash's own standard error leads nowhere and only commands get one: whatever prompt they set is printed there.
- The inner bash is interactive without a terminal: SIGINT then aborts the whole command, a builtin loop included, and the
  shell survives with its working directory and variables.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_saber.sandbox.accounts import Account
from pytest_saber.sandbox.channel import Channel, Reply

MAX_COMMAND = 256 * 1024
"""Bytes of one command after quoting. Bash reads its input byte by byte."""

ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GRACE = 15.0
"""Seconds beyond a command's limit until the outer bash is given up: it needs at most 6 for the ladder in `stop`."""
_CWD_BYTES = 4096

# What an interactive bash without a terminal says when a foreground job dies by a signal.
_NO_TERMINAL = re.compile(r"^bash: \[\d+: \d+ \(\d+\)\] tcsetattr: Inappropriate ioctl for device\n", re.MULTILINE)

_LOOP = r"""
exec 3>&1
trap '' PIPE
exec {nap}<> <(:)
memory=/sys/fs/cgroup/memory.events; [[ -e $memory ]] || memory=/sys/fs/cgroup/memory/memory.oom_control
forks=/sys/fs/cgroup/pids.events; [[ -e $forks ]] || forks=/sys/fs/cgroup/pids/pids.events
count() {
  local key value total=0
  [[ -e $1 ]] && while read -r key value; do [[ $key == "$2" ]] && total=$value; done < "$1"
  counted=$total
}
now() { now=${EPOCHREALTIME/[.,]/}; }
pause() { read -r -t "$1" -u $nap; }
start() {
  [[ -n $in ]] && exec {in}>&- {out}<&-
  coproc SH {
    trap - PIPE
    printf 500 > /proc/self/oom_score_adj
    cd "$workdir" || cd "$home" || cd /
    eval "$environment"
    exec setpriv --reuid="$uid" --regid="$gid" --init-groups -- \
      bash --norc --noprofile --noediting -i 253>&1 1>&3 254>&1 2>/dev/null 3>&- {nap}>&-
  } 2>/dev/null
  shell=$SH_PID
  read -r born < /proc/$shell/stat; set -- ${born##*) }; born=${20:-0}
  exec {in}>&"${SH[1]}" {out}<&"${SH[0]}"
  eval "exec ${SH[1]}>&- ${SH[0]}<&-"
  printf '%s\n' 'PS1= PS2=; unset MAILCHECK OLDPWD; set +o history +H; set -m' >&$in
}
answer() {
  local rc left limit
  while :; do
    now; left=$(( $1 - now )); (( left > 0 )) || return 2
    printf -v limit '%d.%06d' $(( left / 1000000 )) $(( left % 1000000 ))
    IFS=' ' read -r -n 8192 -t "$limit" -u $out got code cwd; rc=$?
    (( rc > 128 )) && return 2
    (( rc )) && return 1
    [[ $got == "$token" ]] && return 0
  done
}
answer_within() { now; answer $(( now + $1 )); state=$?; (( state != 2 )); }
children() {
  local entry stat
  newest= latest=0 own=
  for entry in /proc/[0-9]*/stat; do
    read -r stat < "$entry" || continue
    set -- "${stat%% *}" ${stat##*) }
    if (( $1 == shell )); then own=$4
    elif (( $3 == shell && ${21} >= latest )); then latest=${21} newest=$1 group=$4; fi
  done 2>/dev/null
}
stop() {
  local tries key value
  while read -r key value; do [[ $key == SigIgn: ]] && break; done < /proc/$shell/status
  if (( 16#${value:-0} & 2 )); then
    # It would go on with the rest of the command.
    children; kill -9 $shell; [[ -n $newest && $group != "$own" ]] && kill -9 -- -$group; return
  fi
  kill -INT $shell; answer_within 300000 && return
  for tries in 1 2 3; do
    children
    [[ -n $newest ]] || break
    if [[ $group == "$own" ]]; then kill -9 $newest; else kill -9 -- -$group; fi
    answer_within 700000 && return
    kill -INT $shell
  done
  kill -9 $shell
}
{ start; } 2>/dev/null
while IFS=' ' read -r nonce limit line; do
  how=done code= cwd= token=$RANDOM$RANDOM$RANDOM
  [[ -n $shell ]] || start
  printf '%s\n\n{ \\builtin printf "%%s %%s %%q\\n" %s "$?" "$PWD" >&253; } 2>/dev/null\n' "$line" "$token" >&$in
  now; end=$(( now + limit ))
  answer $end; state=$?
  if (( state == 2 )); then how=timeout; stop; fi
  if (( state != 0 )); then
    while kill -0 $shell; do
      now; if (( now > end )); then how=timeout; kill -9 $shell; fi
      pause 0.02
    done
    wait $shell; code=$? shell= cwd=
    [[ $how == done ]] && how=lost || how=killed
  fi
  count $memory oom_kill; oom=$counted
  count $forks max
  # Bash writes line by line: with a newline before the marker, others' output could come between the two.
  printf '%s %s %s %s %s %s %s\n' "$nonce" $how "$code" "$oom" "$counted" "${shell:+$shell:$born}" "$cwd" >&3
done 2>/dev/null
"""


class How(StrEnum):
    """How a command ended, in the words of the outer bash."""

    DONE = "done"
    TIMEOUT = "timeout"
    LOST = "lost"
    """The shell ended with the command."""
    KILLED = "killed"
    """The shell had to be killed to enforce the time limit."""


@dataclass(frozen=True, slots=True)
class ShellReply:
    """What a command printed, and how the outer bash says it ended."""

    output: str
    truncated: bool
    how: How
    exit_code: int | None
    cwd: str
    """After the command; empty when the shell was lost."""
    out_of_memory: int
    """Processes that the kernel has killed so far for want of memory in the workspace."""
    forks_refused: int
    """Processes that could not be started so far because of the limit on them."""
    shell: tuple[int, int] | None
    """Number and start time (clock ticks) of the inner bash, which identify it for good; None when it was lost."""


def quote(text: str) -> str:
    """`text` as one bash word without a newline in it. NUL must not occur."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"$'{escaped}'"


def as_user(account: Account, script: str, *, env: Mapping[str, str]) -> str:
    """A root script that runs `script` in a bash of the account, in the present directory."""
    switch = f"setpriv --reuid={account.uid} --regid={account.gid} --init-groups --"
    return f"({exports(account, env)}; exec {switch} bash --norc --noprofile -c {quote(script)})"


def exports(account: Account, env: Mapping[str, str]) -> str:
    """The command that sets the variables of a login of the account, and those of `env`."""
    variables = {"HOME": account.home, "USER": account.name, "LOGNAME": account.name, "SHELL": "/bin/bash", **env}
    return "export " + " ".join(_assignment(name, value) for name, value in variables.items())


def encode(text: str) -> bytes:
    """What the workspace gets for `text`; lone surrogates, which models can emit, become question marks."""
    return text.encode("utf-8", errors="replace")


class ProcessOne:
    """The container's first process. One call at a time."""

    COMMAND = ("bash", "--norc", "--noprofile")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def root(self, script: str, *, timeout: float) -> tuple[int, str]:
        """Run a script as root and give its exit code and output. Only before `enter`.

        Raises ChannelClosed, TimeoutError.
        """
        nonce = secrets.token_hex(16)
        text = f"( eval {quote(script)} ) </dev/null 2>&1; builtin printf '%s %s\\n' {nonce} \"$?\"\n"
        reply = self._channel.call(encode(text), nonce, timeout)
        return int(reply.fields), reply.output

    def enter(self, account: Account, *, workdir: str, env: Mapping[str, str]) -> None:
        """Begin the second phase."""
        values = {"uid": str(account.uid), "gid": str(account.gid), "home": account.home, "workdir": workdir}
        values["environment"] = exports(account, env)
        settings = " ".join(f"{name}={quote(value)}" for name, value in values.items())
        # One command, so that bash has read all of it before the first command of the user runs.
        self._channel.send(encode(f"shell= in= out= {settings}\neval {quote(_LOOP)}; exit\n"))

    def run(self, command: str, *, timeout: float, env: Mapping[str, str]) -> ShellReply:
        """Run a command of the user. Raises ChannelClosed, TimeoutError when the first process itself is stuck, ValueError."""
        nonce = secrets.token_hex(16)
        line = " ".join(
            [
                *(_assignment(name, value) for name, value in env.items()),
                f"eval {quote(command)} </dev/null 2>&254 253>&- 254>&-",
            ]
        )
        text = encode(f"{nonce} {max(int(timeout * 1_000_000), 1)} {line}\n")
        if "\0" in line:
            raise ValueError("the command contains a NUL byte, which no shell can take")
        if len(text) > MAX_COMMAND:
            raise ValueError(f"the command is longer than {MAX_COMMAND // 1024} KiB; write a file instead")
        return _parse(self._channel.call(text, nonce, timeout + _GRACE))


def _assignment(name: str, value: str) -> str:
    if not ENVIRONMENT_NAME.match(name):
        raise ValueError(f"{name!r} is no name of an environment variable")
    return f"{name}={quote(value)}"


def _parse(reply: Reply) -> ShellReply:
    how, code, oom, forks, shell, cwd = reply.fields.split(" ", 5)
    state = How(how)
    output = _NO_TERMINAL.sub("", reply.output)
    exit_code = int(code) if code.isdecimal() and state not in {How.TIMEOUT, How.KILLED} else None
    pid, _, born = shell.partition(":")
    alive = (int(pid), int(born)) if shell else None
    return ShellReply(output, reply.truncated, state, exit_code, _unquote(cwd)[:_CWD_BYTES], int(oom), int(forks), alive)


def _unquote(word: str) -> str:
    """Undo `printf %q` for what occurs in paths; a word in `$'...'` form is kept as it is."""
    return word if word.startswith("$'") else re.sub(r"\\(.)", r"\1", word)
