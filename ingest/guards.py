"""Frames that check something, or throw, for somebody else: where the innermost frame is one, its caller is at fault.

``Preconditions.checkState``, ``requireNonNull``, ``_check_input_dim`` or ``createIllegalArgumentException`` stand in
the traces of unlike failures, which they would bring together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.model import Frame

_HELPER = re.compile(
    r"(?:^|[.$:])(?:Preconditions?|Validate|Validators?|Validations?|Asserts?|Assertions?|Verify|Objects|Intrinsics|Guards?"
    r"|Checks?|Args|Require|Ensure|Contracts?|Throwables|ExceptionUtils?|ExceptionHelper|ThrowHelper)$"
)
"""Classes and modules of such functions."""
_FUNCTION = re.compile(
    r"""(?:^|[.:$])_*(?:
      (?:check|verify|require|assert|ensure|validate|enforce|expect|guard)(?:[A-Z_0-9]\w*)?
    | (?:throw|raise|rethrow|fail|panic|die|abort)(?:[A-Z_0-9]\w*)?
    | (?:create|new|make|build|to|as|wrap)_?\w*(?:Exception|Error|_error|_exception)
    )$""",
    re.X,
)


def is_guard(frame: Frame) -> bool:
    """Whether the frame checks, or throws, for its caller."""
    return _HELPER.search(frame.module) is not None or _FUNCTION.search(frame.function) is not None


def past_guards(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return frames, innermost first, without the guards at the innermost end; all of them where all are guards."""
    at = next((i for i, frame in enumerate(frames) if not is_guard(frame)), 0)
    return tuple(frames[at:])
