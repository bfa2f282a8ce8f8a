"""The root line: what states the cause wins, whatever stands around it, and every line gets its role."""

import pytest

from crashpath.ingest.model import Frame, Mark, Parsed, Role, Thrown
from crashpath.ingest.parse import parse
from crashpath.ingest.root import find_root
from crashpath.ingest.rules import Rule, Rules, load_rules

RULES = load_rules()
PLAIN = Parsed("plain")


def thrown(kind: str, message: str, line: int, *frames: Frame) -> Thrown:
    return Thrown(kind, message, line, frames)


def test_first_cause_wins_among_equals_in_either_order_of_print() -> None:
    """Rule: of two known causes the chain's first is the root, whether the format prints it first or last."""
    cause, effect = "Permission denied: '/srv/cache'", "Can't load tokenizer for 'm1'"
    python = f"PermissionError: {cause}\n\nThe above exception was the direct cause\n\nOSError: {effect}"
    root = find_root(
        python,
        Parsed("python_traceback", (thrown("PermissionError", cause, 0), thrown("OSError", effect, 4))),
        RULES,
    )
    assert (root.line, root.type, root.failure_class) == (0, "PermissionError", "permission_disk")
    java = f"OSError: {effect}\n\tat a.B.c(B.java:1)\nCaused by: PermissionError: {cause}"
    root = find_root(java, Parsed("java", (thrown("PermissionError", cause, 2), thrown("OSError", effect, 0))), RULES)
    assert (root.line, root.failure_class) == (2, "permission_disk")


@pytest.mark.parametrize("swap", [False, True])
def test_specific_cause_beats_generic_exception_whichever_comes_first(swap: bool) -> None:
    """Rule: a line that states a cause beats an exception that no rule knows, before it or after it."""
    lines = ["ValueError: bad answer from step 3", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB"]
    if swap:
        lines.reverse()
    at = lines.index("ValueError: bad answer from step 3")
    parsed = Parsed("python_traceback", (thrown("ValueError", "bad answer from step 3", at),))
    assert find_root("\n".join(lines), parsed, RULES).failure_class == "oom_device"


def test_cascade_never_replaces_an_earlier_root() -> None:
    """Rule: wrappers and aftermath keep the role of a cascade, whatever they shout."""
    text = "\n".join(
        [
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 3303), No space left on device",
            "node-0:11:44 [0] NCCL INFO proxy.cc:1336 -> 2",
            "torch.distributed.DistBackendError: NCCL error in: a.cpp:77, unhandled system error",
            "RuntimeError: Engine core initialization failed. See root cause above.",
        ]
    )
    marks = (Mark("WARN"), Mark("INFO"), Mark("ERROR"), Mark("ERROR"))
    root = find_root(text, PLAIN, RULES, marks)
    assert (root.line, root.failure_class) == (0, "permission_disk")
    assert root.roles == (Role.ROOT, Role.CASCADE, Role.CASCADE, Role.CASCADE)


def test_wrappers_alone_name_no_class() -> None:
    """Rule: where only wrappers stand, the root is one of them and the class is unknown, not guessed."""
    text = "RuntimeError: Engine core initialization failed. See root cause above."
    parsed = Parsed("python_traceback", (thrown("RuntimeError", text.partition(": ")[2], 0),))
    root = find_root(text, parsed, RULES)
    assert (root.line, root.rule, root.failure_class) == (0, "chain-first-cause", None)


def test_kernel_line_confirms_a_stated_cause_and_is_the_root_of_a_bare_kill() -> None:
    """Rule: the kernel's line is a second witness beside a stated cause, and the root over a bare kill or a 137."""
    kernel = "Memory cgroup out of memory: Killed process 77 (server) total-vm:9kB, anon-rss:8kB"
    root = find_root(f"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 3.00 GiB\n{kernel}", PLAIN, RULES)
    assert root.line == 0
    assert root.roles[1] is Role.CONFIRMATION
    root = find_root(f"Killed\n{kernel}\nExit Code: 137", PLAIN, RULES)
    assert (root.line, root.rule, root.failure_class) == (1, "kernel-oom-killed", "oom_host")


def test_exit_137_alone_proves_nothing() -> None:
    """Rule: exit code 137 without a reason is not out of memory."""
    assert find_root("container exited with code 137", PLAIN, RULES).failure_class is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WORKER TIMEOUT (pid:77)\nWorker (pid:77) was sent SIGKILL! Perhaps out of memory?", "hang"),
        ("svc: State 'stop-sigterm' timed out. Killing.\nsvc: Main process exited, code=killed, status=9/KILL", "hang"),
        (
            "svc: start operation timed out. Terminating.\nMain process exited, code=killed, status=9/KILL",
            "load_timeout",
        ),
        ("Worker (pid:77) was sent SIGKILL! Perhaps out of memory?", "oom_host"),
        ("Killed", "oom_host"),
    ],
)
def test_signal_nine_of_a_supervisor_is_not_out_of_memory(text: str, expected: str) -> None:
    """Rule: signal 9 is out of memory only where no supervisor says that its own clock ran out."""
    assert find_root(text, PLAIN, RULES).failure_class == expected


def test_benign_look_alikes_do_not_win() -> None:
    """Rule: advice, arguments, echoed source and healthy levels are no causes."""
    text = "\n".join(
        [
            "There was a problem when trying to write in your cache folder (/srv/.cache).",
            "A larger batch may cause out of memory.",
            "Traceback (most recent call last):",
            '  File "/app/serve.py", line 3, in go',
            '    fail("CUDA error: out of memory")',
            "ValueError: mode must be one of a, b",
        ]
    )
    parsed = Parsed("python_traceback", (thrown("ValueError", "mode must be one of a, b", 5),))
    root = find_root(text, parsed, RULES)
    assert (root.line, root.rule, root.failure_class) == (5, "chain-first-cause", None)


def test_information_loses_to_an_error() -> None:
    """Rule: a line at a healthy level is a cause only where no line at a level of failure says anything."""
    text = "cache miss: No such file or directory\nmodel answered nonsense"
    assert find_root(text, PLAIN, RULES, (Mark("INFO"), Mark("ERROR"))).rule == "highest-level-line"
    assert find_root(text, PLAIN, RULES, (Mark("INFO"), Mark("INFO"))).rule == "model-file-missing"


def test_advice_in_a_message_does_not_silence_it() -> None:
    """Rule: an exception whose message goes on with advice still tells its cause."""
    message = "CUDA error: an illegal memory access was encountered\nThis may lead to out of memory. Compile with `X`."
    root = find_root(
        f"RuntimeError: {message}", Parsed("python_traceback", (thrown("RuntimeError", message, 0),)), RULES
    )
    assert root.failure_class == "device_fault"


def test_without_rules_the_shape_of_the_record_decides() -> None:
    """Rule: with no rule the order is first cause, highest level, death, first words, and each says so."""
    nothing = Rules(())
    chain = Parsed("python_traceback", (thrown("KeyError", "'a'", 1),))
    assert find_root("x\nKeyError: 'a'", chain, nothing).rule == "chain-first-cause"
    assert find_root("a\nb\nc", PLAIN, nothing, (Mark("ERROR"), Mark("INFO"), Mark("WARN"))).line == 0
    died = find_root("a\nreceived SIGSEGV\n", Parsed("plain", signal="SIGSEGV"), nothing)
    assert (died.rule, died.line, died.failure_class) == ("signal-or-exit-line", 1, "native_crash")
    first = find_root("\n\nsomething stopped", PLAIN, nothing)
    assert (first.rule, first.line, first.message) == ("first-line", 2, "something stopped")
    assert find_root("", PLAIN, nothing).roles == (Role.ROOT,)


def test_roles_have_one_entry_a_line_and_one_root() -> None:
    """Rule: one role a line, exactly one root; the same words again confirm it."""
    text = "CUDA error: out of memory\nsome words\nCUDA error: out of memory\nKilled"
    roles = find_root(text, PLAIN, RULES).roles
    assert roles == (Role.ROOT, Role.CONTEXT, Role.CONFIRMATION, Role.CASCADE)


def test_message_is_freed_of_the_runtimes_wrapping() -> None:
    """Rule: the root's message is what is meant, without log brackets and error grammar."""
    said = "Could not find an implementation for Foo(3) node with name 'n'"
    line = f"[E:onnxruntime:, inference_session.cc:2044 operator()] Exception during initialization: {said}"
    root = find_root(line, PLAIN, RULES)
    assert root.message == said
    assert root.failure_class == "unsupported_op"


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ((Frame("main", "app", True), Frame("from_pretrained", "transformers.modeling", False)), "load"),
        ((Frame("InferenceSession.__init__", "onnxruntime.capi.x", False),), "load"),
        ((Frame("load_model", "app", True), Frame("profile_run", "vllm.worker", False)), "warmup"),
        ((Frame("predict", "app", True), Frame("InferenceSession.run", "onnxruntime.capi.x", False)), "infer"),
        ((Frame("load_model", "app", True), Frame("hf_hub_download", "huggingface_hub", False)), "prepare"),
        ((Frame("main", "app", True),), None),
    ],
)
def test_phase_comes_from_the_stack(frames: tuple[Frame, ...], expected: str | None) -> None:
    """Rule: the functions on the stack tell the phase; a fetch or a warm-up inside a load is named as such."""
    parsed = Parsed("python_traceback", (thrown("KeyError", "'a'", 0, *frames),))
    assert find_root("KeyError: 'a'", parsed, Rules(())).phase == expected


def test_held_out_rules_change_the_answer() -> None:
    """Rule: the class is the rule's; with the rule switched off the line is not known any more."""
    rule = Rule("only-one", Role.ROOT, 4, "alpha beta", "hang", None, ("lib",), (), ("alpha beta",), ("x",))
    assert find_root("alpha beta", PLAIN, Rules((rule,))).failure_class == "hang"
    assert find_root("alpha beta", PLAIN, Rules((rule,)).without_libraries({"lib"})).failure_class is None


def test_too_slow_while_starting_is_not_ready_in_time() -> None:
    """Rule: the same timeout is a hang while serving and a late start where the stack shows a load or a fetch."""
    text = "TimeoutError: timed out"
    serving = thrown("TimeoutError", "timed out", 0, Frame("predict", "app.api", True))
    loading = thrown("TimeoutError", "timed out", 0, Frame("open_session", "app.model", True))
    assert find_root(text, Parsed("python_traceback", (serving,)), RULES).failure_class == "hang"
    assert find_root(text, Parsed("python_traceback", (loading,)), RULES).failure_class == "load_timeout"


def test_a_file_missing_while_a_tokenizer_is_built_is_the_tokenizers() -> None:
    """Rule: a missing or broken file has the class of what was being built from it."""
    text = "Exception: No such file or directory (os error 2)"
    plain = thrown("Exception", "No such file or directory (os error 2)", 0, Frame("read_weights", "app", True))
    built = thrown("Exception", "No such file or directory (os error 2)", 0, Frame("from_file", "tokenizers", False))
    assert find_root(text, Parsed("python_traceback", (plain,)), RULES).failure_class == "load_corrupt"
    assert find_root(text, Parsed("python_traceback", (built,)), RULES).failure_class == "tokenizer"


def test_the_same_arena_is_of_the_device_only_where_a_device_is_spoken_of() -> None:
    """Rule: a rule with needs speaks only in a record that meets them."""
    line = "bfc_arena.cc:376 AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 99"
    assert find_root(line, PLAIN, RULES).failure_class == "oom_host"
    assert find_root(f"providers: CUDAExecutionProvider\n{line}", PLAIN, RULES).failure_class == "oom_device"


REPORT = """==77==ERROR: AddressSanitizer: {what} on unknown address 0x000000000018 (pc 0x4f2ae7 bp 0x7ffe sp 0x7ffd T0)
    #0 0x4f2ae7 in gemm::tile(float*) /srv/gemm.cc:48:11
    #1 0x4f2bb1 in serve /srv/serve.cc:23:3
"""


def rooted(text: str, *marks: Mark) -> str:
    lines = text.count("\n") + 1
    root = find_root(text, parse(text), RULES, (*marks, *(Mark(None),) * lines)[:lines])
    return f"{root.type}: {root.message}" if root.type else root.message


@pytest.mark.parametrize(
    "before",
    [
        "[Environment] ASAN_OPTIONS=handle_abort=1:exitcode=77",
        "$ ASAN_OPTIONS=handle_abort=1 ./server",
        "Command: /srv/server --on-abort SIGABRT",
        "AddressSanitizer:DEADLYSIGNAL",
        "ASAN:SIGSEGV",
        "UndefinedBehaviorSanitizer:DEADLYSIGNAL",
    ],
)
def test_how_it_was_called_and_what_announces_a_report_are_no_cause(before: str) -> None:
    """Rule: neither a command with its environment nor a sanitizer's word on catching a signal hides its report."""
    text = f"{before}\n====\n{REPORT.format(what='SEGV')}"
    assert rooted(text) == "AddressSanitizer: SEGV on unknown address 0x000000000018"


def test_a_report_without_its_level_is_one() -> None:
    """Rule: a logger that took the level off the line hides no report."""
    text = REPORT.format(what="SEGV").removeprefix("==77==ERROR: ")
    assert [(one.type, one.frames[-1].function) for one in parse(text).chain] == [("AddressSanitizer", "gemm::tile")]


def test_an_announcement_without_report_stays_the_root() -> None:
    """Rule: where the report was cut off, the announcement is all there is."""
    assert rooted("loading\nAddressSanitizer:DEADLYSIGNAL") == "AddressSanitizer:DEADLYSIGNAL"


def test_what_a_program_said_before_it_aborted_is_the_root() -> None:
    """Rule: the last line at FATAL, or a fatal error, says why a program aborted; of another signal it says nothing."""
    report = REPORT.format(what="ABRT")
    fatal = "arena is full: 3 of 3 blocks\n"
    assert rooted(fatal + report, Mark("FATAL")) == fatal.strip()
    assert rooted(fatal + report, Mark("INFO")).startswith("AddressSanitizer: ABRT")
    assert rooted(fatal + REPORT.format(what="SEGV"), Mark("FATAL")).startswith("AddressSanitizer: SEGV")
    assert (
        rooted(f"#\n# Fatal error in src/arena.cc, line 12\n# arena is full\n#\n{report}")
        == "Fatal error: arena is full"
    )


def test_a_line_of_a_signal_yields_to_the_message_of_its_abort() -> None:
    """Rule: Android names the signal first and says later why; the reason is the root."""
    tombstone = "Fatal signal 6 (SIGABRT), code -6 in tid 17 (server)\nsignal 6 (SIGABRT), code -6 (SI_TKILL)\n"
    message = "Abort message: 'arena.cc:12 CHECK_EQ(used, size) failed: 3 vs. 4'\nbacktrace:\n"
    stack = "    #0 0x00084fe6 in abort /bionic/libc/abort.cpp:47\n    #1 0x000bf682 in arena::grow() arena.cc:12:9\n"
    assert rooted(tombstone + message + stack) == "SIGABRT: arena.cc:12 CHECK_EQ(used, size) failed: 3 vs. 4"


def test_a_frame_is_no_root_where_its_report_stands() -> None:
    """Rule: a native frame alone says that native code ended; the report above it says how."""
    text = f"==77== ERROR: libFuzzer: deadly signal\n{REPORT.partition(chr(10))[2]}"
    assert rooted(text) == "libFuzzer: deadly signal"
