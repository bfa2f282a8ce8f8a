"""A release review as the bytes of a file: the same whether a command writes it or a page hands it out."""

from __future__ import annotations

from crashpath.dashboard.review_model import Review


def html_bytes(review: Review) -> bytes:
    """Return the page that needs nothing else (``--html``)."""
    from crashpath.dashboard.review_html import page

    return page(review).encode("utf-8", "backslashreplace")


def markdown_bytes(review: Review) -> bytes:
    """Return the comment for a pull request (``--markdown``)."""
    from crashpath.dashboard.review_markdown import markdown

    return markdown(review).encode("utf-8", "backslashreplace")


def json_bytes(review: Review) -> bytes:
    """Return the document (``--json``)."""
    from crashpath.dashboard.json_line import json_line
    from crashpath.dashboard.review_json import document

    return json_line(document(review)).encode("utf-8")
