"""What the session that ships executes: optimised as in production, so its nodes are not those of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crashpath.coverage.onnx_graph import link_beside, name_apart, nodes_of
from crashpath.coverage.onnx_session import check_providers, end_profile, open_watched
from crashpath.coverage.scratch import Scratch
from crashpath.coverage.units import Shipped
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays


def shipped(folder: ModelFolder, providers: Sequence[str], feeds: Sequence[Arrays]) -> Shipped:
    """Run feeds on an optimised session and return which of its nodes ran, by operator.

    A feed that fails is told in ``problems`` and costs the other feeds nothing; so is a session that does not open.
    """
    problems: list[str] = []
    with Scratch("shipped") as scratch:
        try:
            session, nodes = _open(folder, providers, scratch.path / "session.onnx")
        except Exception as error:  # noqa: BLE001  # a library's, or DeviceInit: production would raise it, too
            return Shipped(0, 0, (), (f"the session that ships does not open here ({_told(error)})",))
        for number, feed in enumerate(feeds, start=1):
            try:
                session.run(None, dict(feed))
            except Exception as error:  # noqa: BLE001  # a library's
                problems.append(f"the session that ships fails on feed {number} of {len(feeds)} ({_told(error)})")
        profile = end_profile(session)
    if profile.full or profile.requests < len(feeds) - len(problems):
        problems.append("the profile of the session that ships was full: nodes that ran late may be missing")
    ran = {event.node for event in profile.nodes}
    left = tuple(sorted(f"{name} ({operator})" for name, operator in nodes.items() if name not in ran))
    return Shipped(len(nodes) - len(left), len(nodes), left, tuple(problems))


def _open(folder: ModelFolder, providers: Sequence[str], saved: Path) -> tuple[Any, dict[str, str]]:
    """Open the session, with the names and operators of its nodes.

    Where names are empty or used twice (a fused node of a function has none), the graph that the session has is named
    by place and opened once more, at no optimisation: it is optimised.
    """
    import onnx

    check_providers(providers, _available())
    session = open_watched(folder, folder.main, providers, plain=False, saved=saved)
    check_providers(providers, session.get_providers())
    model = onnx.load(str(saved), load_external_data=False)
    if _named_apart(model):
        return session, dict(_names(model))
    end_profile(session)
    name_apart(model)
    named = saved.with_name("named.onnx")
    link_beside(model, folder.main.parent, saved.parent)
    onnx.save(model, str(named))
    return open_watched(folder, named, providers, plain=True), dict(_names(model))


def _available() -> Sequence[str]:
    import onnxruntime as ort

    found: Sequence[str] = ort.get_available_providers()
    return found


def _named_apart(model: Any) -> bool:
    names = [name for name, _ in _names(model)]
    return all(names) and len(set(names)) == len(names)


def _names(model: Any) -> Iterator[tuple[str, str]]:
    yield from ((node.name, node.op_type) for _, _, node, _ in nodes_of(model.graph.node))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
