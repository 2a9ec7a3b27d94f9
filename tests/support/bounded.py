"""Runs code that hostile input may keep busy for hours in a process of its own, which is ended if it hangs.

No test asserts a time. Inputs for `run_bounded` are so large that the way which is to be ruled out (a pattern that goes back
over what it has read, every line compared with every other) needs far longer than `GUARD`, and the right way a second or so.
`GUARD` measures nothing: it is there so that a fault ends with a failed test and the place where it hangs.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

GUARD = 60.0
"""Seconds for one input."""
_TESTS = Path(__file__).parents[1]


def run_bounded(function: Callable[[str], Any], inputs: Sequence[str], *, guard: float = GUARD) -> list[Any]:
    """What `function` returns for each of the inputs, as JSON has it.

    `function` is one of a module's own (found again by its name), in a file without relative imports. The test fails where it
    raises or hangs, with the input and the traceback.
    """
    code = function.__code__.co_filename, function.__qualname__
    command = [sys.executable, "-m", "support.bounded", *code, str(guard)]
    # In the folder of the tests, as pytest finds `support`.
    done = subprocess.run(command, cwd=_TESTS, input=json.dumps(inputs), capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        at = inputs[len(results)] if len(results) < len(inputs) else ""
        pytest.fail(f"{code[1]}({at[:60]!r}, ... {len(at)} characters) did not end well:\n{done.stderr}", pytrace=False)
    return results


def _serve(file: str, name: str, guard: float) -> None:
    specification = importlib.util.spec_from_file_location("bounded_module", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    function = getattr(module, name)
    for text in json.load(sys.stdin):
        # A thread of C code, which ends the process even while a pattern holds the interpreter.
        faulthandler.dump_traceback_later(guard, exit=True)
        result = json.dumps(function(text))
        faulthandler.cancel_dump_traceback_later()
        print(result, flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], float(sys.argv[3]))
