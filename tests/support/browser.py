"""A headless Chromium, driven by its own driver's HTTP interface (WebDriver)."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from tests.support import debian
from tests.support.processes import Service, free_port, port_is_open, start_service

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)


class BrowserError(Exception):
    """The browser did not do it; the text says why."""


class Browser:
    """Debian's; where it is missing and we are root, it is installed."""

    def __init__(self, directory: Path, size: tuple[int, int] = (1024, 800)) -> None:
        debian.install("chromium", "chromium-driver")
        assert shutil.which("chromedriver")
        port = free_port()
        self._driver: Service = start_service(
            ["/usr/bin/chromedriver", f"--port={port}"],
            port,
            directory / "chromedriver.log",
            ready=lambda: port_is_open(port),
        )
        options = {
            "binary": "/usr/bin/chromium",
            "args": [
                *_FLAGS,
                f"--window-size={size[0]},{size[1]}",
                f"--user-data-dir={directory / 'profile'}",
            ],
        }
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        made = self._say("POST", f"http://127.0.0.1:{port}/session", wanted)
        self._url = f"http://127.0.0.1:{port}/session/{made['sessionId']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._say("DELETE", self._url)
        self._driver.stop()

    def go(self, url: str) -> None:
        self._say("POST", f"{self._url}/url", {"url": url})

    def run(self, script: str) -> Any:
        """What the body of a JavaScript function returns."""
        return self._say("POST", f"{self._url}/execute/sync", {"script": script, "args": []})

    def type(self, selector: str, text: str) -> None:
        self._say("POST", f"{self._element(selector)}/value", {"text": text})

    def click(self, selector: str) -> None:
        """As a mouse does: what is hidden, or behind something else, can't be clicked on."""
        self._say("POST", f"{self._element(selector)}/click", {})

    def screenshot(self) -> bytes:
        return base64.b64decode(self._say("GET", f"{self._url}/screenshot"))

    def _element(self, selector: str) -> str:
        """The first that a CSS selector, or an XPath, finds."""
        using = "xpath" if selector.startswith("//") else "css selector"
        element = self._say("POST", f"{self._url}/element", {"using": using, "value": selector})
        [number] = element.values()
        return f"{self._url}/element/{number}"

    def _say(self, method: str, url: str, body: Any = None) -> Any:
        answer = requests.request(method, url, json=body, timeout=60)
        told = answer.json()["value"]
        if answer.status_code != 200:
            raise BrowserError(f"{told['error']}: {told['message']}")
        return told
