"""A document of ``--json`` as text: one line, whatever was in the logs that it speaks of."""

from __future__ import annotations

import json
from typing import Any


def json_line(document: Any) -> str:
    """Return the document as JSON on one line that ends as lines do, and that can be written as UTF-8."""
    line = json.dumps(document, ensure_ascii=False, default=str)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half a character, from a log or an id: escaped it is JSON all the same
        line = json.dumps(document, default=str)
    return line + "\n"
