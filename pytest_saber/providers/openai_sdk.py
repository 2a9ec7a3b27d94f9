"""What clients of both of OpenAI's protocols share."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pytest_saber.providers.sdk import SdkClient


class OpenAIClient(SdkClient):
    """A ModelClient on OpenAI's SDK, whatever the protocol."""

    def _create(self, package: Any, http_client: Any) -> Any:
        settings = self._settings
        return package.OpenAI(
            api_key=settings.key.reveal(),
            base_url=settings.base_url,
            max_retries=0,
            timeout=settings.timeout,
            http_client=http_client,
        )


def is_official(base_url: str) -> bool:
    """Whether the address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")
