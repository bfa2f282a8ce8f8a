"""Faults of a model folder's runtime that take for ever: in a load they are `load_timeout`, in a run `hang`."""

from __future__ import annotations

from crashpath.coverage.drillplan import BOUND_S, ENDS_SERVICE, DrillPlan
from crashpath.coverage.fault import Fault
from crashpath.coverage.modelapps import spoilt, struck, supervised


def _waits(name: str, title: str, strike: str, argument: str = "", *, process_only: str = "") -> tuple[Fault, Fault]:
    """One strike as two faults: the class is decided by the phase that it stands in."""
    bounded = f"{argument}|{BOUND_S}" if argument else BOUND_S
    plans = {
        phase: DrillPlan(phases, "hit, and not back", strike, argument, bounded=bounded, process_only=process_only)
        for phase, phases in (("infer", ("infer",)), ("load", ("load", "warmup")))
    }
    library = "onnxruntime" if "graph" in strike else "python"
    frozen = strike == "process.stopped"
    make = supervised if frozen else struck
    infer = make(strike, phase="infer") if frozen else struck(strike, argument, phase="infer")
    load = make(strike, phase="load") if frozen else struck(strike, argument, phase="load")
    return (
        Fault(f"model-{name}", "hang", "infer", library, f"{title}, while it runs", infer, drill=plans["infer"]),
        Fault(
            f"model-{name}-load", "load_timeout", "load", library, f"{title}, while it loads", load, drill=plans["load"]
        ),
    )


FAULTS = (
    *_waits("sleeps", "wait for what never comes", "waiting.sleeps"),
    *_waits("spins", "a loop without end in Python", "waiting.spins"),
    *_waits(
        "holds-interpreter",
        "native code that keeps the interpreter's lock",
        "waiting.holds_the_interpreter",
        process_only=ENDS_SERVICE,
    ),
    *_waits("deadlocks", "take a lock twice", "waiting.deadlocks"),
    *_waits("reads-a-pipe", "wait for a helper that is silent", "waiting.reads_a_pipe"),
    *_waits("endless-graph", "a Loop of ONNX Runtime without end", "waiting.graph_without_end", "{loop}"),
    *_waits("stopped", "frozen by SIGSTOP", "process.stopped", process_only=ENDS_SERVICE),
    Fault(
        "model-request-loop",
        "hang",
        "infer",
        "onnxruntime",
        "a request that makes the model's own Loop endless",
        spoilt("poison-loop", phase="infer"),
        drill=DrillPlan(("infer",), r"computed [0-9.]+ s for the request", spoiler="poison-loop"),
    ),
    Fault(
        "model-never-delivered",
        "load_timeout",
        "load",
        "onnxruntime",
        "a storage that is asked for the model and never delivers it",
        spoilt("never-delivered"),
        ("linux",),
        drill=DrillPlan(("load",), "a reader waits", spoiler="held"),
    ),
)
