"""Faults of the host of a model folder: graphs that a library refuses, rights, disks, packages, drivers, networks."""

from __future__ import annotations

from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.fault import Fault
from crashpath.coverage.modelapps import struck

LIFE = ("load", "warmup", "infer")
_WHOLE_PROCESS = "it sets a limit or a user of the whole process that serves"


def _strike(
    fault_id: str,
    failure_class: str,
    library: str,
    title: str,
    strike: str,
    proof: str,
    *,
    argument: str = "",
    phases: tuple[str, ...] = LIFE,
    needs: tuple[str, ...] = (),
    process_only: str = "",
) -> Fault:
    plan = DrillPlan(phases, proof, strike, argument, needs=needs, process_only=process_only)
    tools = tuple(need for need in needs if need in ("gcc", "root"))
    run = struck(strike, argument, phase=phases[0])
    return Fault(f"model-{fault_id}", failure_class, phases[0], library, title, run, tools, drill=plan)


GRAPHS = (
    _strike(
        "graph-shapes", "shape_inference", "onnxruntime", "a graph whose shapes do not fit is opened", "graph.opens",
        "ShapeInferenceError", argument="{load_shapes}",
    ),
    _strike(
        "graph-types", "shape_inference", "onnxruntime", "a graph whose types do not fit is opened", "graph.opens",
        "Type Error", argument="{load_types}",
    ),
    _strike(
        "graph-run-shapes", "shape_inference", "onnxruntime", "a graph that opens cannot be run", "graph.runs",
        "MatMul", argument="{run_shapes}",
    ),
    _strike(
        "graph-kernel", "unsupported_op", "onnxruntime", "a graph without a kernel is opened", "graph.opens",
        "NOT_IMPLEMENTED", argument="{kernel_missing}",
    ),
    _strike(
        "graph-domain", "unsupported_op", "onnxruntime", "a graph of an unknown domain is opened", "graph.opens",
        "not a registered function/op", argument="{domain_unknown}",
    ),
)  # fmt: skip

HOST = (
    _strike(
        "not-executable", "permission_disk", "python", "a helper program has lost its execute bit",
        "host.not_executable", "Permission denied",
    ),
    _strike(
        "unreadable", "permission_disk", "python", "a file belongs to somebody else", "host.unreadable",
        "Permission denied", argument="{closed_file}", process_only=_WHOLE_PROCESS,
    ),
    _strike("no-space", "permission_disk", "python", "a full device is written to", "host.no_space", "No space left"),
    _strike(
        "small-disk", "permission_disk", "python", "a small disk fills up", "host.no_space", "No space left",
        argument="{small-disk}", needs=("root",),
    ),
    _strike(
        "read-only-disk", "permission_disk", "python", "a read-only disk is written to", "host.read_only",
        "Read-only file system", argument="{read-only-disk}", needs=("root",),
    ),
    _strike(
        "too-many-files", "permission_disk", "python", "the limit of open files is met", "host.too_many_files",
        "Too many open files", process_only=_WHOLE_PROCESS,
    ),
    _strike(
        "package-missing", "dependency", "python", "a package is not installed", "host.module_missing",
        "No module named",
    ),
    _strike(
        "library-missing", "dependency", "python", "a shared library is not there", "host.library_missing",
        "cannot open shared object file",
    ),
    _strike(
        "extension-broken", "dependency", "python", "an extension module is no whole library",
        "host.extension_broken", "file too short|invalid ELF",
    ),
    _strike(
        "symbol-missing", "dependency", "python", "a library of another version", "host.symbol_missing",
        "undefined symbol", argument="{library_unlinked}", needs=("gcc",),
    ),
    _strike(
        "driver-missing", "device_init", "python", "the device's driver is not there", "host.driver_missing",
        "libcuda", phases=("load", "warmup"), needs=("no-device",),
    ),
    _strike(
        "provider-broken", "device_init", "onnxruntime", "a provider whose vendor library is absent",
        "host.provider_broken", "libcublasLt", argument="{provider_unlinked}", phases=("load", "warmup"),
        needs=("gcc",),
    ),
)  # fmt: skip

NETWORK = tuple(
    _strike(
        f"fetch-{name}", "network_auth", "python", title, "host.fetch", proof, argument=f"{{address-{name}}}",
        phases=("prepare", "load"),
    )
    for name, title, proof in (
        ("401", "a fetch without the right to it", "401"),
        ("403", "a fetch that is forbidden", "403"),
        ("refused", "a fetch where nobody listens", "refused"),
        ("reset", "a fetch whose connection is closed", "closed connection|reset"),
        ("tls", "a fetch over TLS where none is spoken", "SSL"),
        ("unresolved", "a fetch from a name that nobody knows", "Name or service not known|resolution|getaddrinfo"),
    )
)  # fmt: skip

PREPARE = (
    _strike(
        "prepare-package", "dependency", "python", "the tokenizer's package is not installed", "host.module_missing",
        "No module named", phases=("prepare",),
    ),
    _strike(
        "prepare-memory", "oom_host", "numpy", "the request's array is refused", "memory.array_refused",
        "Unable to allocate", phases=("prepare",),
    ),
    _strike(
        "prepare-disk", "permission_disk", "python", "the cache of fetched files is full", "host.no_space",
        "No space left", phases=("prepare",),
    ),
)  # fmt: skip

FAULTS = (*GRAPHS, *HOST, *NETWORK, *PREPARE)
