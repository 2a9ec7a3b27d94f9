"""What the errors of a model service mean: try again, give up, or the model's own behaviour."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pytest_saber.errors import FaultSource
from pytest_saber.providers.keys import Key
from pytest_saber.providers.retry import Failure

LONGEST = 500
"""Characters of a service's message that are kept."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"})
_QUOTA = re.compile(
    r"credit balance is too low|exceeded your current quota|insufficient (credits|balance|funds)", re.IGNORECASE
)
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"})
_OVERFLOW = re.compile(
    r"maximum context length|context[ _](length|size|window|limit)|prompt is too long|input is too long|too many input tokens",
    re.IGNORECASE,
)
_REFUSAL_CODES = frozenset(
    {"content_filter", "content_policy_violation", "invalid_prompt", "policy_violation", "ResponsibleAIPolicyViolation"}
)
_RETRIED_STATUS = frozenset({408, 409, 425, 429})


class BadReply(Exception):
    """A reply of the service that does not follow its protocol."""


class SdkErrors:
    """The exception classes of one SDK; both vendors' SDKs name them alike."""

    def __init__(self, sdk: Any) -> None:
        self.api: type[Exception] = sdk.APIError
        self.status: type[Exception] = sdk.APIStatusError
        self.connection: type[Exception] = sdk.APIConnectionError
        self.timeout: type[Exception] = sdk.APITimeoutError


def behaviour(error: Exception) -> Literal["context_overflow", "refusal"] | None:
    """Whether a refused request is the model's behaviour rather than a fault: its context was full, or it refused."""
    if getattr(error, "status_code", None) not in (400, 413, 422):
        return None
    codes, text = _codes(error), _text(error)
    if codes & _OVERFLOW_CODES or _OVERFLOW.search(text) or getattr(error, "status_code", None) == 413:
        return "context_overflow"
    return "refusal" if codes & _REFUSAL_CODES else None


def understand(error: Exception, model: str, key: Key, errors: SdkErrors) -> Failure:
    """Sort any exception of one try. The message is bounded and holds no key."""

    def failure(source: FaultSource, text: str, **more: Any) -> Failure:
        return Failure(source, f"{model}: {_bounded(key.clean(text))}", **more)

    service = FaultSource.MODEL_SERVICE
    if isinstance(error, errors.timeout | TimeoutError) or _is_transport(error, "TimeoutException"):
        return failure(service, "no answer in time", retry=True, timed_out=True)
    if isinstance(error, errors.connection):
        cause = error.__cause__
        return failure(service, f"cannot be reached: {cause or error}", retry=True)
    if _is_transport(error, "TransportError") or _is_transport(error, "StreamError"):
        return failure(service, f"the connection broke: {error}", retry=True)
    if isinstance(error, BadReply | json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return failure(service, f"malformed reply: {error}", retry=True)
    if isinstance(error, errors.status):
        return _understand_status(error, key, failure)
    if isinstance(error, errors.api):  # an error event in the middle of a stream
        return failure(service, _text(error), retry=True)
    return failure(FaultSource.HARNESS, f"{type(error).__name__}: {error}")


def _understand_status(error: Any, key: Key, failure: Callable[..., Failure]) -> Failure:
    status: int = error.status_code
    codes, text = _codes(error), f"HTTP {error.status_code}: {_text(error)}"
    if status == 402 or codes & _QUOTA_CODES or _QUOTA.search(text):
        return failure(FaultSource.QUOTA, text)
    if status in (401, 403):
        return failure(FaultSource.CREDENTIALS, f"the service refused the key in {key.variable}: {text}")
    if status in _RETRIED_STATUS or status >= 500 or status < 400:  # the last: an error event in a stream that began well
        return failure(FaultSource.MODEL_SERVICE, text, retry=True, after=retry_after(error.response.headers))
    if status in (400, 404, 422) and re.search(r"\btools?\b|tool[_-]choice", text, re.IGNORECASE):
        text += " [a model without tool calls works with --saber-tool-format=fenced]"
    return failure(FaultSource.MODEL_SERVICE, text)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a service asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    try:
        return max(0.0, float(headers.get("retry-after-ms", "")) / 1000)
    except ValueError:
        pass
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(value)
        except (ValueError, TypeError):
            return None
        seconds = date.timestamp() - (time.time() if now is None else now)
    return max(0.0, seconds) if seconds < float("inf") else None


def _codes(error: Any) -> set[str]:
    """`code` and `type` of the error body, wherever the vendor puts them."""
    body = getattr(error, "body", None)
    found: set[str] = set()
    for part in (body, body.get("error") if isinstance(body, dict) else None):
        if isinstance(part, dict):
            found.update(part[name] for name in ("code", "type") if isinstance(part.get(name), str))
    return found


def _text(error: Any) -> str:
    body = getattr(error, "body", None)
    for part in (body.get("error") if isinstance(body, dict) else None, body):
        if isinstance(part, dict) and isinstance(part.get("message"), str):
            kind = part.get("type") or part.get("code")
            return f"{part['message']} ({kind})" if isinstance(kind, str) else str(part["message"])
    return str(getattr(error, "message", "") or error)


def _bounded(text: str) -> str:
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _is_transport(error: Exception, name: str) -> bool:
    """Whether the error is one of the HTTP library that both SDKs bring along; it surfaces raw while a stream is read."""
    return any(cls.__name__ == name and cls.__module__.startswith(("httpx", "httpcore")) for cls in type(error).__mro__)
