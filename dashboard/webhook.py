"""Post a document to a webhook, and know what became of it: told, surely not told, or perhaps told.

The address holds a secret: no message, log or error of this module names it.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPException
from importlib.metadata import version
from typing import Any


class Fate(Enum):
    """What became of a message. PERHAPS: it was on its way, and nobody said whether it came through."""

    TOLD = "told"
    NOT_TOLD = "not told"
    PERHAPS = "perhaps told"


@dataclass(frozen=True, slots=True)
class Answer:
    """The fate of a message, and why in a few words where it was not told."""

    fate: Fate
    why: str = ""


def post(address: str, document: Any, timeout: float) -> Answer:
    """Post JSON and return what became of it after ``timeout`` seconds at most.

    Redirects are not followed: who is behind one was not given the address. The environment's proxies are used.
    """
    errand = _Errand(address, json.dumps(document).encode("ascii"), timeout)
    thread = threading.Thread(target=errand.run, name="crashpath-webhook", daemon=True)
    thread.start()
    thread.join(timeout)
    return errand.answer(f"no answer in {timeout:g} s")


class _Errand:
    """One request in a thread of its own: a server that sends a byte now and then would hold it for ever."""

    def __init__(self, address: str, body: bytes, timeout: float) -> None:
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"crashpath/{version('crashpath')}",
        }
        self._request = urllib.request.Request(address, data=body, headers=headers, method="POST")
        self._timeout = timeout
        self._lock = threading.Lock()
        self._connected = self._abandoned = False
        self._answer: Answer | None = None

    def run(self) -> None:
        opener = urllib.request.build_opener(_NoRedirect, _plain(self._on_connected), _secure(self._on_connected))
        try:
            with opener.open(self._request, timeout=self._timeout):
                self._end(Answer(Fate.TOLD))
        except urllib.error.HTTPError as error:  # any other status than 2xx
            error.close()
            moved = ", which points to another address: set that one" if 300 <= error.code < 400 else ""
            self._end(Answer(Fate.NOT_TOLD, f"HTTP status {error.code}{moved}"))
        except (OSError, HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            self._end(Answer(Fate.PERHAPS if self._connected else Fate.NOT_TOLD, _short(cause)))

    def answer(self, late: str) -> Answer:
        """Return what is known now; a request that is not on its way yet is not sent any more."""
        with self._lock:
            self._abandoned = True
            return self._answer or Answer(Fate.PERHAPS if self._connected else Fate.NOT_TOLD, late)

    def _end(self, answer: Answer) -> None:
        with self._lock:
            self._answer = answer

    def _on_connected(self) -> None:
        with self._lock:
            if self._abandoned:
                raise TimeoutError("too late")
            self._connected = True


def _short(cause: object) -> str:
    """Say what a connection failed with, by kind: texts of errors may repeat the host."""
    named = isinstance(cause, OSError) and cause.strerror and not isinstance(cause, TimeoutError)
    text = str(cause.strerror) if named and isinstance(cause, OSError) else type(cause).__name__
    return "no connection in time" if isinstance(cause, TimeoutError) else text


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _plain(connected: Callable[[], None]) -> urllib.request.HTTPHandler:
    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            connected()

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    return Handler()


def _secure(connected: Callable[[], None]) -> urllib.request.HTTPSHandler:
    class Connection(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            connected()

    class Handler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    return Handler()
