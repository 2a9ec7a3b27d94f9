"""What the clients on vendors' SDKs have in common: lazy import, one retry policy, no key in any text."""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pytest_saber.errors import FaultSource, InfrastructureFault, UsageError
from pytest_saber.model.ports import ChatMessage, ModelReply, ModelRequest
from pytest_saber.providers.arguments import clean_json
from pytest_saber.providers.failures import BadReply, SdkErrors, behaviour, understand
from pytest_saber.providers.keys import Key, public_url
from pytest_saber.providers.options import Reader, flag, json_object, number, whole, word
from pytest_saber.providers.retry import TRIES, Retrier

LARGEST_REPLY = 16 * 1024 * 1024

COMMON_ARGUMENTS: Mapping[str, Reader] = {
    "max_tokens": whole(1, 1_000_000),
    "temperature": number(0, 2),
    "timeout": number(1, 3600),
    "tries": whole(1, 20),
    "key_env": word,
    "extra_body": json_object,
    "native_tools": flag,
}
"""Model arguments that every service client takes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How requests to one model are made. Times in seconds."""

    provider: str
    name: str
    key: Key
    base_url: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """Model arguments, read."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The same as they were written."""
    max_tokens: int = 4096
    """Of a reply, where neither the request nor the arguments say."""

    @property
    def model(self) -> str:
        """`provider/name`."""
        return f"{self.provider}/{self.name}"

    @property
    def timeout(self) -> float:
        """Of one try."""
        return float(self.args.get("timeout", 120.0))

    def tokens(self, request: ModelRequest) -> int:
        """Most tokens of the reply: the argument's, else the request's, else the provider's default."""
        return int(self.args.get("max_tokens") or request.max_tokens or self.max_tokens)

    def temperature(self, request: ModelRequest) -> float | None:
        """The argument's, else the request's; None leaves it to the service."""
        value = self.args.get("temperature", request.temperature)
        return None if value is None else float(value)


class SdkClient(ABC):
    """A ModelClient on a vendor's SDK, which is imported with the first request. Thread-safe."""

    def __init__(self, settings: Settings, package: str, retrier: Retrier | None = None) -> None:
        self._settings = settings
        self._package = package
        self._retrier = retrier or Retrier(tries=settings.args.get("tries", TRIES))
        self._lock = threading.Lock()
        self._sdk: Any = None
        self._errors: SdkErrors | None = None
        self._closed = False

    @property
    def model(self) -> str:
        """`provider/name`."""
        return self._settings.model

    @property
    def native_tools(self) -> bool:
        """True unless the model argument `native_tools` says otherwise."""
        return bool(self._settings.args.get("native_tools", True))

    @property
    def details(self) -> Mapping[str, str]:
        """What an agent's identity tells of the client: address, SDK version, arguments. Never a key."""
        cleaned = {name: self._settings.key.clean(text) for name, text in self._settings.given.items()}
        return {
            "base_url": public_url(self._settings.base_url),
            self._package: version(self._package),
            **{f"model_arg.{name}": text for name, text in sorted(cleaned.items())},
        }

    def complete(self, request: ModelRequest) -> ModelReply:
        """Raises InfrastructureFault when the service fails for good."""
        sdk, errors = self._connected()
        settings = self._settings

        def attempt(timeout: float) -> ModelReply:
            try:
                return self._send(sdk, request, timeout)
            except errors.status as error:
                kind = behaviour(error)
                if kind is None:
                    raise
                text = settings.key.clean(str(error))[:500]
                return ModelReply(ChatMessage("assistant", ""), kind, model=settings.name, details={"refused": text})

        return self._retrier.call(
            attempt,
            lambda error: understand(error, self.model, settings.key, errors),
            seconds=request.seconds,
            attempt_seconds=settings.timeout,
        )

    def close(self) -> None:
        """End the calls under way and the connections. Idempotent."""
        self._retrier.close()
        with self._lock:
            self._closed = True
            if self._sdk is not None:
                self._sdk.close()

    def _connected(self) -> tuple[Any, SdkErrors]:
        with self._lock:
            if self._closed:
                raise InfrastructureFault(FaultSource.HARNESS, f"{self.model}: the model client was closed")
            if self._sdk is None:
                package = importlib.import_module(self._package)
                self._errors = SdkErrors(package)
                self._sdk = self._create(package, _http_client(package, self._settings.base_url))
            assert self._errors is not None  # noqa: S101 - set together with the SDK
            return self._sdk, self._errors

    def _read(self, response: Any, deadline: float) -> Any:
        """The decoded body of a reply that is not streamed, bounded in size and time however slowly it trickles in."""
        data = bytearray()
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) > LARGEST_REPLY:
                raise BadReply(f"more than {LARGEST_REPLY} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError
        return self._received(json.loads(data))

    def _received(self, body: Any) -> Any:
        """A decoded body as it may be kept: valid text, without the key."""
        return self._settings.key.without(clean_json(body))

    @abstractmethod
    def _create(self, package: Any, http_client: Any) -> Any:
        """The SDK's client, without retries of its own."""

    @abstractmethod
    def _send(self, sdk: Any, request: ModelRequest, timeout: float) -> ModelReply:
        """One try. Raises what the SDK raises, or BadReply."""


def count(value: Any) -> int:
    """A number of tokens as a service gave it; 0 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def require(package: str, model: str, *, extra: str = "") -> None:
    """Raise UsageError with the pip command when an SDK is not installed that the `model` needs, `provider/name`."""
    if importlib.util.find_spec(package) is None:
        raise UsageError(
            f"--saber-model={model}: the package '{package}' is not installed;"
            f" run: pip install 'pytest-saber[{extra or package}]'"
        )


def checked_url(url: str, origin: str) -> str:
    """Raise UsageError for an address that is no HTTP address."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(f"{origin}: '{url[:200]}' is not an address such as https://host:port/v1")
    return url


def _http_client(package: Any, base_url: str) -> Any:
    """A proxy from the environment is right for a service, and wrong for a server on this machine. None: the SDK's default."""
    host = urlsplit(base_url).hostname or ""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    return package.DefaultHttpxClient(trust_env=False) if local else None
