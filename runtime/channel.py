"""Messages between a lane and its worker: JSON with a length before it, over a pair of sockets.

Whoever reads waits no longer than its deadline, and learns at once that the other side is gone.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("!I")
LARGEST = 16 << 20


class ChannelError(Exception):
    """Root of what a channel raises: `GoneError`, `LateError`, `GarbledError`."""


class GoneError(ChannelError):
    """The other side is dead or has closed its end."""


class LateError(ChannelError):
    """Nothing came, or nothing could be sent, by the deadline."""


class GarbledError(ChannelError):
    """What came is no message."""


class Channel:
    """One end. Messages are JSON objects as mappings; not for two readers or two writers at once."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._read = b""

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait on."""
        return self._end.fileno()

    def send(self, message: dict[str, Any], deadline: float | None = None) -> None:
        """Send one message by ``deadline`` (monotonic seconds). Raises `GoneError`, `LateError`."""
        text = json.dumps(message, separators=(",", ":")).encode()
        try:
            self._end.settimeout(_left(deadline))
            self._end.sendall(_LENGTH.pack(len(text)) + text)
        except TimeoutError as error:
            raise LateError("a message could not be sent in time") from error
        except OSError as error:
            raise GoneError(f"the other side of the channel is gone ({error})") from error

    def receive(self, deadline: float | None = None) -> dict[str, Any]:
        """Return the next message. Raises `GoneError`, `LateError`, `GarbledError`."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size, deadline))
        if length > LARGEST:
            raise GarbledError(f"a message of {length} bytes was announced where {LARGEST} is the most")
        text = self._take(length, deadline)
        try:
            message = json.loads(text)
        except ValueError as error:
            raise GarbledError("what came is not JSON") from error
        if not isinstance(message, dict):
            raise GarbledError("what came is not a JSON object")
        return message

    def close(self) -> None:
        """Close this end; the other side's reads end."""
        self._end.close()

    def _take(self, count: int, deadline: float | None) -> bytes:
        while len(self._read) < count:
            try:
                self._end.settimeout(_left(deadline))
                more = self._end.recv(max(count - len(self._read), 1 << 16))
            except TimeoutError as error:
                raise LateError("nothing came in time") from error
            except OSError as error:
                raise GoneError(f"the other side of the channel is gone ({error})") from error
            if not more:
                raise GoneError("the other side of the channel is gone")
            self._read += more
        taken, self._read = self._read[:count], self._read[count:]
        return taken


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
