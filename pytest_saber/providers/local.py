"""`local/NAME`: a real language model on this machine's CPU, without key or network.

`local/smollm2-135m` is SmolLM2-135M (`pytest-saber model` fetches its weights), `--saber-model-arg path=FILE` takes any GGUF
file under any name. The engine llama.cpp (package `xllamacpp`) serves it over its OpenAI-compatible HTTP API on the
loopback address, in a child process that starts with the first request and ends with the client or with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from pytest_saber.cache import models_dir
from pytest_saber.errors import FaultSource, InfrastructureFault, UsageError
from pytest_saber.model.ports import ModelClient, ModelReply, ModelRequest
from pytest_saber.providers.keys import Key, is_secret_name
from pytest_saber.providers.openai_chat import ChatClient
from pytest_saber.providers.options import ModelOptions, Reader, number, read_arguments, whole, word
from pytest_saber.providers.sdk import Settings, require

WEIGHTS: Mapping[str, str] = {"smollm2-135m": "SmolLM2-135M-Instruct.Q4_1.gguf"}
"""Models with a name of their own, and their file in the models folder."""
PROGRAM = Path(__file__).with_name("local_server.py")
_DEFAULTS: Mapping[str, Any] = {
    # The same words every time, yet not greedily: a small model then repeats itself for ever.
    "temperature": 0.4,
    "seed": 1,
    # Patient, as requests queue for few slots.
    "timeout": 600.0,
    # A reply ends with its first shell block: what small models write after it is the output as they imagine it.
    "extra_body": {"stop": ["\n```\n"]},
}
MAX_TOKENS = 128
RESULT_CHARS = 1500
START_SECONDS = 120.0
STOP_SECONDS = 5.0

ARGUMENTS: Mapping[str, Reader] = {
    "context": whole(512, 131_072),
    "max_tokens": whole(1, 32_768),
    "path": word,
    "seed": whole(0, 2**31 - 1),
    "slots": whole(1, 16),
    "temperature": number(0, 2),
    "threads": whole(1, 256),
    "timeout": number(1, 3600),
}


def connect(name: str, options: ModelOptions) -> ModelClient:
    """A client for `local/NAME`. Raises UsageError for a missing engine or missing weights, or a wrong argument."""
    for package in ("xllamacpp", "openai"):
        require(package, f"local/{name}", extra="local")
    args = read_arguments("local", options.args, ARGUMENTS)
    if options.base_url:
        raise UsageError(
            "--saber-base-url: a local model has none; a server that runs already is openai/NAME with --saber-base-url"
        )
    return LocalClient(name, find_model(name, args.get("path")), args, options.args)


def find_model(name: str, path: str | None = None) -> Path:
    """The weights of a local model: `path` if given, else by name in the models folder. Raises UsageError."""
    if path is None:
        if name not in WEIGHTS:
            raise UsageError(
                f"--saber-model=local/{name}: known local models are {', '.join(WEIGHTS)};"
                f" any other is local/{name} with --saber-model-arg path=FILE.gguf"
            )
        found = models_dir() / WEIGHTS[name]
        remedy = "run: pytest-saber model"
    else:
        found = Path(path).expanduser()
        remedy = "give the path of a GGUF file with --saber-model-arg path=FILE"
    try:
        with found.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(f"--saber-model=local/{name}: no weights at {found} ({error.strerror}); {remedy}") from error
    if magic != b"GGUF":
        raise UsageError(f"--saber-model=local/{name}: {found} is not a GGUF file; {remedy}")
    return found.resolve()


class LocalClient:
    """A ModelClient whose service is a child process of its own. Thread-safe."""

    def __init__(self, name: str, weights: Path, args: Mapping[str, Any], given: Mapping[str, str]) -> None:
        self._name = name
        self._weights = weights
        self._args = {**_DEFAULTS, **args}
        self._given = given
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._closed = False

    @property
    def model(self) -> str:
        """`local/NAME`."""
        return f"local/{self._name}"

    @property
    def native_tools(self) -> bool:
        """Small models write shell blocks; those that can call tools are better served by a server of their own."""
        return False

    @property
    def details(self) -> Mapping[str, str]:
        """What an agent's identity tells: engine version, weights, arguments."""
        args = {f"model_arg.{name}": text for name, text in sorted(self._given.items()) if name != "path"}
        return {"xllamacpp": version("xllamacpp"), "weights": self._weights.name, **args}

    @property
    def result_chars(self) -> int:
        """How much of a tool's output it is shown at most: a thousand tokens take it seconds to read."""
        return RESULT_CHARS

    def complete(self, request: ModelRequest) -> ModelReply:
        """Raises InfrastructureFault when the engine does not start, or ends."""
        engine = self._started()
        try:
            return engine.client.complete(request)
        except InfrastructureFault as fault:
            if engine.process.poll() is None:
                raise
            raise InfrastructureFault(fault.source, f"{self.model}: {engine.obituary()}") from None

    def close(self) -> None:
        """End the child process. Calling it again does nothing."""
        atexit.unregister(self.close)
        with self._lock:
            self._closed = True
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def _started(self) -> _Engine:
        with self._lock:
            if self._closed:
                raise InfrastructureFault(FaultSource.HARNESS, f"{self.model}: the model client was closed")
            if self._engine is not None and self._engine.process.poll() is not None:
                self._engine.close()
                self._engine = None
            if self._engine is None:
                self._engine = _start(self._name, self._weights, self._args, self._given)
                atexit.register(self.close)
            return self._engine


@dataclass(frozen=True, slots=True)
class _Engine:
    """A running child process and the client of its HTTP API."""

    process: subprocess.Popen[str]
    log: IO[bytes]
    client: ModelClient

    def obituary(self) -> str:
        return _obituary(self.process, self.log)

    def close(self) -> None:
        self.client.close()
        _stop(self.process, self.log)


def _start(name: str, weights: Path, args: Mapping[str, Any], given: Mapping[str, str]) -> _Engine:
    """Start the child and wait for its address. Raises InfrastructureFault."""
    token = secrets.token_hex(16)
    # Has no name in the file system; of use only when the engine fails. Closed by `_stop`.
    log = tempfile.TemporaryFile(prefix="pytest-saber-engine-")  # noqa: SIM115 - outlives this function
    process = subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={variable: value for variable, value in os.environ.items() if not is_secret_name(variable)},
        start_new_session=True,  # Ctrl-C is for the session, which ends its runs first
    )
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    assert process.stdout is not None  # noqa: S101 - the same
    settings = {
        "path": str(weights),
        "name": name,
        "context": args.get("context", 4096),
        "slots": args.get("slots", 2),
        # Half of the cores: the engine's threads wait for each other by spinning, and the workspaces need some too.
        "threads": args.get("threads", max(1, (os.cpu_count() or 1) // 2)),
        "token": token,
    }
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    stdout = process.stdout
    threading.Thread(target=lambda: answers.put(stdout.readline()), name="local model", daemon=True).start()
    try:
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        line = answers.get(timeout=START_SECONDS)
        address = json.loads(line)["address"] if line else ""
    except (queue.Empty, BrokenPipeError):
        address = ""
    if not address:
        reason = _obituary(process, log)
        _stop(process, log)
        raise InfrastructureFault(FaultSource.MODEL_SERVICE, f"local/{name}: {reason}")
    key = Key("the local engine's token", token)
    client = ChatClient(Settings("local", name, key, f"{address}/v1", args, given, max_tokens=MAX_TOKENS), "openai")
    return _Engine(process, log, client)


def _obituary(process: subprocess.Popen[str], log: IO[bytes]) -> str:
    """How the child ended, with the end of its log."""
    try:
        ending = f"the engine ended with code {process.wait(timeout=1)}"
    except subprocess.TimeoutExpired:
        ending = f"the engine did not start within {START_SECONDS:.0f} s"
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - 2000))
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return f"{ending}: {' | '.join(lines[-5:]) or 'it said nothing'}"


def _stop(process: subprocess.Popen[str], log: IO[bytes]) -> None:
    """End the child, kindly first."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it is gone already
            process.stdin.close()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    log.close()
