"""Checks of the two paths: each artefact is loaded in a child, by the backend that serves it, and answers."""

from __future__ import annotations

from collections.abc import Callable

from crashpath.runtime.finding import Check, Result, fail, ok, skip, warn
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE
from crashpath.runtime.look import Look
from crashpath.runtime.probe_child import MAIN, MISFIT, TOKENIZER, TORCHSCRIPT, VOCABULARY

_HALF = 0.5
Run = Callable[[Look], Result]
_OWN = {
    "native_crash": "stays_up",
    "unsupported_op": "kernels",
    "shape_inference": "shapes",
    "load_timeout": "load_time",
    "hang": "time",
    "oom_host": "memory.proof",
    MISFIT: "signature",
}
"""Failure classes that a check of their own reports, whose id ends so; `loads` and `runs` report all others."""


def library(kind: str) -> Run:
    """The path's library can be imported and works without a model."""

    def run(look: Look) -> Result:
        found = look.probe(kind)
        if found.version:
            return ok(f"{kind if kind == TORCHSCRIPT else 'onnxruntime'}: version {found.version}")
        name = "torch" if kind == TORCHSCRIPT else "onnxruntime"
        return fail(found.message or "no answer", f"pip install --force-reinstall {name}; look at what it says.")

    return run


def free_of(kind: str, failure: str, good: str, fix: str, phases: tuple[str, ...] = ("load", "infer")) -> Run:
    """The path shows no failure of one class in these phases."""

    def run(look: Look) -> Result:
        found = look.probe(kind)
        if found.failure == failure and found.phase in phases:
            return fail(found.message, fix)
        return ok(good) if found.loaded else skip(f"the load failed otherwise: {found.failure}")

    return run


def loads(kind: str, file: str) -> Run:
    """The artefact loads."""

    def run(look: Look) -> Result:
        found = look.probe(kind)
        if found.loaded:
            return ok(f"loaded in {found.load_s or 0:.2f} s")
        if found.failure in _OWN:
            return skip(f"{found.failure}: see {_OWN[found.failure]}")
        return fail(found.message or "it did not load", f"Copy {file} again, or: {look.export}")

    return run


def load_time(kind: str) -> Run:
    """The load ends well before the folder's limit."""

    def run(look: Look) -> Result:
        found, limit = look.probe(kind), look.model.limits.load_s
        raise_it = f"Raise limits.load_s in model.toml (now {limit:g}), or look at what the load waits for."
        if found.failure == "load_timeout":
            return fail(f"not loaded within {limit:g} s", raise_it)
        if found.load_s is None:
            return skip("it did not load")
        told = f"{found.load_s:.2f} s of {limit:g} s"
        if found.load_s > limit:  # it ended just before the child would have been
            return fail(told, raise_it)
        return warn(told, raise_it) if found.load_s > _HALF * limit else ok(told)

    return run


def runs(kind: str) -> Run:
    """The golden feed is answered, whatever the answer."""

    def run(look: Look) -> Result:
        found = look.probe(kind)
        if found.compared is not None:
            return ok("the golden feed is answered")
        if found.failure in _OWN and found.failure != "shape_inference":
            return skip(f"{found.failure}: see {_OWN[found.failure]}")
        return fail(found.message or "no answer", f"Look at the operator that is named, or: {look.export}")

    return run


def run_time(kind: str) -> Run:
    """The golden feed is answered within the folder's deadline."""

    def run(look: Look) -> Result:
        found, limit = look.probe(kind), look.model.limits.deadline_ms
        fix = f"Raise limits.deadline_ms in model.toml (now {limit:g}), give more threads, or make the model smaller."
        if found.failure == "hang":
            return fail(f"no answer within {look.wanted.run_s:g} s", fix)
        if found.run_ms is None:
            return skip("it did not answer")
        told = f"{found.run_ms:.1f} ms of {limit:g} ms, the first {found.first_ms or 0:.1f} ms"
        if found.run_ms > limit:
            return fail(told, fix)
        return warn(told, fix) if found.run_ms > _HALF * limit else ok(told)

    return run


def golden(kind: str, file: str) -> Run:
    """The answer is the golden one, within the folder's tolerance."""

    def run(look: Look) -> Result:
        compared = look.probe(kind).compared
        if compared is None:
            return skip("it did not answer")
        if compared.equal:
            return ok(f"the golden answer, largest difference {compared.worst_abs:.2g}")
        fix = f"Serve the {file} that golden.npz was made with, or: {look.export}"
        return fail(f"another answer than the golden one: {compared.where}", fix)

    return run


def signature(look: Look) -> Result:
    """Both artefacts take the same inputs in the declared order, and the declared outputs."""
    declared = tuple(one.name for one in look.model.inputs)
    fix = f"Export both artefacts from one module: {look.export}"
    for found in (look.probe(MAIN), look.probe(TORCHSCRIPT)):
        if found.failure == MISFIT:
            return fail(found.message.removeprefix("ModelFolderError: ").partition(";")[0], fix)
        if not found.loaded:
            return skip(f"the {found.kind} artefact did not load")
    main, fallback = look.probe(MAIN).inputs, look.probe(TORCHSCRIPT).inputs
    if set(main) != set(declared):
        return fail(f"{MAIN_FILE} takes {', '.join(main)}; model.toml says {', '.join(declared)}", fix)
    if fallback != declared:
        return fail(f"{FALLBACK_FILE} takes {', '.join(fallback)}; {MAIN_FILE} takes {', '.join(declared)}", fix)
    return ok(f"both take {', '.join(declared)}")


def tokenizer(kind: str) -> Run:
    """The tokenizer can be built and encodes a text."""

    def run(look: Look) -> Result:
        spec = look.model.tokenizer
        name = None if spec is None else spec.file if kind == TOKENIZER else spec.fallback
        if name is None:
            return skip("the folder has no tokenizer" if spec is None else "no fallback of the tokenizer is declared")
        found = look.probe(kind)
        if found.load_s is not None and not found.failure:
            return ok(f"{name}: built and encoded in {found.load_s * 1e3:.0f} ms")
        return fail(f"{name}: {found.message}", f"Copy {name} again from the model's source.")

    return run


def offline(look: Look) -> Result:
    """No child tried to reach the network while it loaded."""
    contacts = sorted({one for kind in (MAIN, TORCHSCRIPT) for one in look.probe(kind).contacts})
    if contacts:
        return warn(f"loading reaches for {', '.join(contacts)}", "Put what it fetches into the folder.")
    return ok("nothing is fetched to load either path")


def _load_checks(path: str, kind: str, file: str, needs: tuple[str, ...]) -> tuple[Check, ...]:
    started = (f"{path}.library",)
    crash = "Serve it in process isolation only, and report the crash; or take another version of the library."
    kernel = "Export with another opset, type or decomposition, or upgrade the library."
    stays_up = free_of(kind, "native_crash", "the child that loaded it lived", crash)
    kernels = free_of(kind, "unsupported_op", "every operator has a kernel", kernel)
    shapes = free_of(kind, "shape_inference", "shapes fit when it loads", _SHAPES, ("load",))
    return (
        Check(f"{path}.library", "dependency", "its library works", library(kind), needs),
        Check(f"{path}.stays_up", "native_crash", "it kills no process", stays_up, started),
        Check(f"{path}.kernels", "unsupported_op", "its operators run here", kernels, started),
        Check(f"{path}.shapes", "shape_inference", "its shapes fit when it loads", shapes, started),
        Check(f"{path}.load_time", "load_timeout", "it is ready in time", load_time(kind), started),
        Check(f"{path}.load", "load_corrupt", "it loads", loads(kind, file), started),
    )


def _run_checks(path: str, kind: str, file: str, fits: str) -> tuple[Check, ...]:
    needs = (f"{path}.load", "golden.file", fits)
    return (
        Check(f"{path}.time", "hang", "it answers in the deadline", run_time(kind), needs),
        Check(f"{path}.runs", "shape_inference", "it answers the golden feed", runs(kind), needs),
        Check(
            f"{path}.golden", "load_corrupt", "it gives the golden answer", golden(kind, file), (*needs, f"{path}.runs")
        ),
    )


_SHAPES = "Export again; look at the node that is named."
_FILES = ("folder.spec", "files.readable", "files.content")
PATH_CHECKS = (
    *_load_checks(
        "main",
        MAIN,
        MAIN_FILE,
        (*_FILES, "main.file", "graph.external", "graph.ir", "graph.opset", "graph.operators", "device.provider"),
    ),
    *_load_checks("fallback", TORCHSCRIPT, FALLBACK_FILE, (*_FILES, "fallback.file")),
    Check(
        "signature", "shape_inference", "both artefacts take the same", signature, ("main.library", "fallback.library")
    ),
    *_run_checks("main", MAIN, MAIN_FILE, "graph.names"),
    *_run_checks("fallback", TORCHSCRIPT, FALLBACK_FILE, "signature"),
    Check(
        "tokenizer.main", "tokenizer", "the tokenizer builds", tokenizer(TOKENIZER), ("folder.spec", "files.readable")
    ),
    Check(
        "tokenizer.fallback",
        "tokenizer",
        "its fallback builds",
        tokenizer(VOCABULARY),
        ("folder.spec", "files.readable"),
    ),
    Check("paths.offline", "network_auth", "nothing is fetched to load", offline, ("main.load", "fallback.load")),
)
