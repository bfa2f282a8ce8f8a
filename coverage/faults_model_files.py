"""Faults of the files of a model folder: a copy of it is really broken, whichever model it is."""

from __future__ import annotations

from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.fault import Fault
from crashpath.coverage.modelapps import spoilt, spoilt_tokenizer

_PARSING = "INVALID_PROTOBUF|No graph was found|Protobuf parsing failed"


def _file(name: str, failure_class: str, title: str, proof: str, *needs: str) -> Fault:
    plan = DrillPlan(("load",), proof, spoiler=name, needs=needs)
    return Fault(f"model-{name}", failure_class, "load", "onnxruntime", title, spoilt(name), drill=plan)


def _script(name: str, failure_class: str, title: str, proof: str) -> Fault:
    plan = DrillPlan(("load",), proof, spoiler=name, path="torchscript")
    return Fault(f"model-{name}", failure_class, "load", "torch", title, spoilt(name), drill=plan)


def _tokenizer(name: str, failure_class: str, title: str, proof: str, *needs: str) -> Fault:
    plan = DrillPlan(("prepare",), proof, spoiler=name, needs=needs)
    run = spoilt_tokenizer(name)
    return Fault(f"model-{name}", failure_class, "prepare", "tokenizers", title, run, drill=plan)


FAULTS = (
    _file("cut", "load_corrupt", "the model's second half is missing", _PARSING),
    _file("empty", "load_corrupt", "a model of no bytes", _PARSING),
    _file("garbage", "load_corrupt", "random bytes in the place of the model", _PARSING),
    _file("pointer", "load_corrupt", "a Git LFS pointer in the place of the model", _PARSING),
    _file("gone", "load_corrupt", "the model is not there", r"absent(.|\n)*NO_SUCHFILE"),
    _file("is-folder", "load_corrupt", "a folder in the place of the model", "INVALID_PROTOBUF|directory|folder"),
    _file("future-opset", "load_corrupt", "an opset from the future", "opset"),
    _file("future-ir", "load_corrupt", "a format from the future", "IR version"),
    _file("dangling-edge", "load_corrupt", "a graph whose edge leads nowhere", "not a graph input"),
    _file(
        "weights-gone",
        "load_corrupt",
        "the external weights are not there",
        r"absent(.|\n)*[Ee]xternal data",
    ),
    _file("weights-cut", "load_corrupt", "the external weights are cut short", "[Ee]xternal|out of bounds"),
    _file("impossible-shape", "shape_inference", "a product whose sides do not fit", "ShapeInferenceError"),
    _file("impossible-type", "shape_inference", "a sum of two types", "Type Error|bound to different types"),
    _file("unknown-operator", "unsupported_op", "an operator that nobody registered", "No Op registered"),
    _file("unknown-domain", "unsupported_op", "an operator of an unknown domain", "not a registered function/op"),
    _file("kernel-missing", "unsupported_op", "an operator without a kernel for its type", "NOT_IMPLEMENTED"),
    _file("closed", "permission_disk", "a model of mode 000", "[Pp]ermission denied|error number 13", "not-root"),
    _file(
        "weights-closed",
        "permission_disk",
        "external weights of mode 000",
        "[Pp]ermission denied|SystemError : 13",
        "not-root",
    ),
    Fault(
        "model-request-shape",
        "shape_inference",
        "infer",
        "onnxruntime",
        "a good request that the model's own Reshape cannot take",
        spoilt("poison-shape", phase="infer"),
        drill=DrillPlan(("infer",), "cannot be reshaped", spoiler="poison-shape"),
    ),
    _script("script-cut", "load_corrupt", "the TorchScript archive's second half is missing", "zip|archive|central"),
    _script(
        "script-gone",
        "load_corrupt",
        "the TorchScript archive is not there",
        r"absent(.|\n)*(does not exist|No such file)",
    ),
    _tokenizer("tokenizer-cut", "tokenizer", "tokenizer.json cut in half", "EOF|expected"),
    _tokenizer("tokenizer-empty", "tokenizer", "tokenizer.json of no bytes", "EOF|expected"),
    _tokenizer("tokenizer-pointer", "tokenizer", "a Git LFS pointer in the place of tokenizer.json", "expected"),
    _tokenizer("tokenizer-html", "tokenizer", "a sign-in page in the place of tokenizer.json", "expected"),
    _tokenizer("tokenizer-gone", "tokenizer", "tokenizer.json is not there", "No such file"),
    _tokenizer("tokenizer-variant", "tokenizer", "a tokenizer of an unknown variant", "did not match any variant"),
    _tokenizer("tokenizer-closed", "permission_disk", "tokenizer.json of mode 000", "[Pp]ermission denied", "not-root"),
)
