"""One event of a cluster's lineage in words."""

from __future__ import annotations

from crashpath.dashboard.decide_text import muted, resolved
from crashpath.dashboard.plurals import many
from crashpath.ingest.details import Event

_BY = {"recluster": "when clusters were formed anew", "rekey": "by a re-key", "person": "by a person"}


def happened(event: Event) -> str:
    """Return what happened, without its day: ``joined by sig2-3f9c…``."""
    detail, by = event.detail, str(event.detail.get("by", ""))
    how = f" {_BY[by]}" if by in _BY else f" (decision {detail['decision']})" if "decision" in detail else ""
    match event.kind:
        case "born":
            out_of = f", out of {detail['out_of']}" if "out_of" in detail else ""
            return f"born as {detail.get('class', 'a cluster')}{out_of}{how}"
        case "joined":
            return f"joined by {event.signature_id}{how}"
        case "continued":
            return f"went on with {_signatures(detail.get('signatures'))}{how}"
        case "merged":
            return (f"went into {detail['into']}" if "into" in detail else f"took {event.other}") + how
        case "split":
            return f"{_signatures(detail.get('signatures'))} went to {event.other}{how}"
        case "retired":
            return f"retired{how}"
        case "classified":
            return f"class {detail.get('old')} became {detail.get('new')}{how}"
        case "renamed":
            return f"name {detail.get('old') or '(none)'} became {detail.get('new') or '(none)'}{how}"
        case "rekeyed":
            return _rekeyed(event)
        case "decided":
            return _decided(event) + how
        case other:
            return other


def _signatures(told: object) -> str:
    return many(told if isinstance(told, int) else 0, "signature")


def _rekeyed(event: Event) -> str:
    encoder, pairs = event.detail.get("encoder"), event.detail.get("signatures")
    if isinstance(encoder, list):
        return f"vectors of {encoder[1]} in place of {encoder[0]}"
    keyed_by = event.detail.get("keyed_by")
    old, new = keyed_by if isinstance(keyed_by, list) else (["?"], "?")
    several = pairs if isinstance(pairs, list) else []
    became = many(len({str(pair[0]) for pair in several}), "signature")
    return f"{became} became {len({str(pair[1]) for pair in several}):,}: keyed by {new}, not {', '.join(old)}"


def _decided(event: Event) -> str:
    if "undoes" in event.detail:
        return f"decision {event.detail['undoes']} was undone"
    if "assignee" in event.detail:
        return f"given to {event.detail['assignee'] or 'nobody'}"
    if "resolved_in" in event.detail:
        return resolved(_text(event.detail["resolved_in"]))
    if "muted_until" in event.detail:
        return muted(_text(event.detail["muted_until"]))
    if "ticket" in event.detail:
        return f"ticket {event.detail['ticket'] or 'taken away'}"
    if "note" in event.detail:
        return f"note: {' '.join(str(event.detail['note']).split())}"
    return "decided"


def _text(told: object) -> str | None:
    return told if isinstance(told, str) else None
