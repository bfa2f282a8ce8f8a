"""Checks of memory: the predicted peak against what there is and what is allowed, then proven in a child."""

from __future__ import annotations

from collections.abc import Mapping

from crashpath.runtime import machine, peak
from crashpath.runtime.finding import Check, Result, fail, ok, skip, warn
from crashpath.runtime.look import MIB, Look
from crashpath.runtime.peak import Peak
from crashpath.runtime.probe_child import MAIN, TORCHSCRIPT
from crashpath.runtime.wording import size

_CLOSE = 0.85
_ROOM = 1.5
"""A limit is on address space, of which more is reserved than used."""
_PATHS = (("main", MAIN), ("fallback", TORCHSCRIPT))


def predicted(look: Look) -> tuple[tuple[str, Peak], ...]:
    """Return the predicted peak of each path for the golden feed. The base of each is measured."""
    graph = look.graph()
    main, fallback = look.probe(MAIN).base, look.probe(TORCHSCRIPT).base
    return ("main", peak.main_peak(graph, main)), ("fallback", peak.fallback_peak(graph, fallback))


def host(look: Look) -> Result:
    """Both paths together fit into what the machine has left."""
    peaks = [one for _, one in predicted(look)]
    need, free = peak.needed(peaks), machine.memory_free()
    told = f"both paths need {size(need)}, {size(free)} is free"
    fix = (
        f"Give {size(need - free)} more, or stop what else runs."
        if need > free
        else "Leave more room, or a smaller model."
    )
    if need > free:
        return fail(told, fix)
    return warn(told, fix) if need > _CLOSE * free else ok(told)


def group(look: Look) -> Result:
    """Both paths together fit under the limit of the cgroup."""
    found = machine.memory_group()
    if found is None:
        return ok("no cgroup limits the memory of this process")
    need = peak.needed([one for _, one in predicted(look)])
    told = f"both paths need {size(need)} of {size(found.limit)} ({found.source})"
    if need > found.limit:
        return fail(told, f"Raise the memory limit of the container to {size(round(need * 1.2))}.")
    return warn(told, "Leave more room under the limit.") if need > _CLOSE * found.limit else ok(told)


def limit(look: Look) -> Result:
    """Each path's model fits under the folder's own limit of a worker."""
    allowed = look.model.limits.memory_mib * MIB
    if not allowed:
        return skip("limits.memory_mib is 0: no limit on a worker")
    bare = {name: look.probe(kind).bare for name, kind in _PATHS}
    needs = {name: max(0, one.total - bare[name]) for name, one in predicted(look)}
    worst = max(needs.values())
    told = f"predicted above the library {_each(needs)}, allowed {size(allowed)}"
    fix = f"Set limits.memory_mib in model.toml to {round(worst * _ROOM) // MIB + 1} or more (or 0: none)."
    if worst > allowed:
        return fail(told, fix)
    return warn(told, fix) if worst > _CLOSE * allowed else ok(told)


def proof(look: Look) -> Result:
    """Each path really loads and answers under the cap: the folder's limit, else what is free."""
    allowed = look.model.limits.memory_mib
    cap = size(allowed * MIB) if allowed else "what is free"
    took: dict[str, int] = {}
    for name, kind in _PATHS:
        found = look.probe(kind, capped=bool(allowed))
        if found.failure == "oom_host":
            return fail(f"{name} ran out of memory in {found.phase} under {cap}", _more(look, kind, bool(allowed)))
        if not found.loaded:
            return skip(f"{name} did not load: {found.failure}")
        took[name] = found.peak - found.bare
    return ok(f"ran under {cap}: {_each(took)} above the library")


def _more(look: Look, kind: str, limited: bool) -> str:
    free = look.probe(kind)
    if not limited:
        return "Give the machine or container more memory, or take a smaller model."
    need = f" to {round((free.peak - free.bare) * _ROOM) // MIB + 1} or more" if free.compared is not None else ""
    return f"Raise limits.memory_mib in model.toml{need} (or 0: none)."


def prediction(look: Look) -> Result:
    """The prediction is near what was measured; where it is not, the other checks of memory say little."""
    parts, worst = [], 0.0
    for (name, one), (_, kind) in zip(predicted(look), _PATHS, strict=True):
        measured = look.probe(kind).peak
        off = peak.apart(one.total, measured)
        worst = max(worst, abs(off))
        parts.append(f"{name} {size(one.total)} against {size(measured)} ({off:+.0%})")
    told = "; ".join(parts)
    if worst > peak.WITHIN:
        return warn(told, "Trust the measured peak, and plan for it.")
    return ok(told)


def _each(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {size(one)}" for name, one in sizes.items())


_STARTED = ("graph.parses", "main.library", "fallback.library")
MEMORY_CHECKS = (
    Check("memory.host", "oom_host", "both paths fit into memory", host, _STARTED),
    Check("memory.cgroup", "oom_host", "both fit under the cgroup's limit", group, _STARTED),
    Check("memory.limit", "oom_host", "each fits under limits.memory_mib", limit, _STARTED),
    Check("memory.proof", "oom_host", "each really ran under that limit", proof, ("main.library", "fallback.library")),
    Check("memory.prediction", "oom_host", "the prediction holds", prediction, ("main.golden", "fallback.golden")),
)
