"""The webhook: what becomes of a message, and that nothing names its address. Against a real server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashpath.dashboard import cli
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.message import document, news
from crashpath.dashboard.settings import SettingsError, load_settings
from crashpath.dashboard.telling import telling_of
from crashpath.dashboard.testing_hook import Hook, hook_server
from crashpath.dashboard.webhook import Answer, Fate, post
from crashpath.ingest.outbox import Thing
from crashpath.ingest.web_address import checked


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A server that answers."""
    with hook_server() as server:
        yield server


def test_a_message_is_posted_as_json(hook: Hook) -> None:
    """What arrives is what was given, whole, with the content type of JSON; 2xx is told."""
    assert post(hook.address, {"text": "größer → 日本"}, 30) == Answer(Fate.TOLD)
    assert hook.posts == [{"text": "größer → 日本"}]
    assert hook.types == ["application/json; charset=utf-8"]
    hook.status = 204
    assert post(hook.address, {}, 30).fate is Fate.TOLD


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 410, 429, 500, 503])
def test_another_status_is_not_told(hook: Hook, status: int) -> None:
    """Whatever is not 2xx was not taken, and the answer says which status it was."""
    hook.status = status
    answer = post(hook.address, {}, 30)
    assert answer.fate is Fate.NOT_TOLD
    assert str(status) in answer.why


def test_redirects_are_not_followed(hook: Hook) -> None:
    """Whoever is behind a redirect gets neither the message nor a request."""
    with hook_server() as other:
        hook.location = other.address
        for hook.status in (301, 302, 303, 307, 308):
            assert post(hook.address, {}, 30).fate is Fate.NOT_TOLD
        assert other.paths == []
    assert len(hook.posts) == 5


def test_nobody_there_is_not_told() -> None:
    """A refused connection, and a name that is nobody's: surely not told, so it may be tried again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}/x", "http://nobody.invalid/x", f"https://127.0.0.1:{port}/x"):
        answer = post(address, {}, 60)
        assert answer.fate is Fate.NOT_TOLD
        assert answer.why


def test_a_server_that_speaks_no_tls_is_not_told(hook: Hook) -> None:
    """The message is not sent before the server has shown who it is."""
    assert post(hook.address.replace("http:", "https:"), {}, 30).fate is Fate.NOT_TOLD
    assert hook.posts == []


def test_a_slow_answer_is_perhaps_told(hook: Hook) -> None:
    """Where the request went out and no answer came in time, nobody knows; the wait ends all the same."""
    hook.delay = 600
    assert post(hook.address, {"n": 1}, 1.0).fate is Fate.PERHAPS
    assert hook.posts == [{"n": 1}]


def test_a_dripping_answer_ends_too(hook: Hook) -> None:
    """A byte now and then never runs into the timeout of a read: the whole errand has one."""
    hook.drip = True
    began = time.monotonic()
    assert post(hook.address, {}, 2.0).fate is Fate.PERHAPS
    assert time.monotonic() - began < 60  # to its end the drip takes over eight minutes


def test_a_connection_that_breaks_is_perhaps_told(hook: Hook) -> None:
    """The request was read, then the server went away: it may have told."""
    hook.hang_up = True
    assert post(hook.address, {}, 30).fate is Fate.PERHAPS
    assert len(hook.posts) == 1


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.org/x", "file:///etc/passwd", "example.org/x", "http://", "http:///x", "https://host:99999/x",
        "https://host:0/x", "https://user:s3cr3t@host/x", "https://host/s3cr3t t0ken", "https://host/s3cr3t\n",
        "https://hößt/s3cr3t", "javascript:alert(1)", "http://[::1/x",
    ],
)  # fmt: skip
def test_other_addresses_are_refused_without_repeating_them(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only http and https, without a password; no message and no chained error has the address in it."""
    with pytest.raises(ValueError, match=r"^it (is|has)") as raised:
        checked(address)
    assert "s3cr3t" not in str(raised.value)
    monkeypatch.setenv("CRASHPATH_WEBHOOK", address)
    with pytest.raises(SettingsError, match="Setting webhook cannot be used: it ") as refused:
        load_settings()
    error: BaseException | None = refused.value
    while error is not None:
        assert "s3cr3t" not in str(error)
        error = error.__cause__ or error.__context__


def test_the_address_comes_from_environment_or_file_and_is_never_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are read; neither settings nor what is made of them show it; an empty one is none."""
    monkeypatch.chdir(tmp_path)
    Path("crashpath.toml").write_text('webhook = "https://hooks.example.org/s3cr3t"\nwebhook_form = "slack"\n')
    settings = load_settings()
    telling = telling_of(settings, None)
    assert telling.webhook is not None
    assert telling.webhook.address == "https://hooks.example.org/s3cr3t"
    assert telling.webhook.form == "slack"
    assert "s3cr3t" not in f"{settings!r} {settings} {telling!r} {settings.model_dump_json()}"
    monkeypatch.setenv("CRASHPATH_WEBHOOK", "")
    assert telling_of(load_settings(), None).webhook is None


def test_a_bad_address_is_wrong_use(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The night does not begin with a webhook that nothing can be sent to, and the sentence has no secret in it."""
    monkeypatch.setenv("CRASHPATH_WEBHOOK", "htps://host/s3cr3t")
    assert cli.run(["nightly", "x.log"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "webhook" in said
    assert "s3cr3t" not in said


HOSTILE = (
    "<!channel> @everyone *bold* `code` <https://evil.example|click> _x_ ~y~ &amp; \x1b[31m\u202e\n\n# head "
    + "A" * 999
)


def test_slack_text_calls_nobody_and_links_nowhere() -> None:
    """Text of logs and of release names stands in code spans: no tag, no format, no line of its own, and is cut."""
    thing = Thing("regressed", "C-0001", "1.0", 1, f"seen in {HOSTILE}", HOSTILE)
    told = document(news([thing] * 30, 5, night=3, status="complete", muted=2), "slack")
    assert told.keys() == {"text"}
    lines = told["text"].split("\n")
    assert len(lines) == 1 + 5 + 2
    assert lines[0] == "*crashpath* night 3: 30 regressed"
    assert lines[-2:] == ["… and 25 regressed more", "2 muted clusters left out"]
    for line in lines[1:6]:
        assert "<" not in line
        assert ">" not in line
        assert "\x1b" not in line
        assert "\u202e" not in line
        assert line.count("`") == 6  # three spans, which nothing inside ends
        assert line.startswith("• *regressed* `C-0001` `seen in &lt;!channel&gt; ")
        outside = "".join(line.split("`")[::2])
        assert outside.split() == ["•", "*regressed*"]
        assert len(line) < 1_000


def test_the_generic_form_has_fields() -> None:
    """A receiver gets each thing in fields, what was left out in counts, and cut text."""
    things = [Thing("new", f"C-{n:04d}", "", n, "OOM: 1 crash", HOSTILE) for n in range(1_000)]
    things.append(Thing("regressed", "C-0007", "1.4", 7, "resolved", "root"))
    told = document(news(things, 3, night=9, status="partial", muted=0), "json")
    assert told["things"][0] == {"kind": "regressed", "subject": "C-0007", "words": "resolved", "title": "root"}
    assert (told["night"], told["status"], told["more"], told["muted"]) == (9, "partial", {"new": 998}, 0)
    assert all(len(one["title"]) <= 300 and one["title"].isprintable() for one in told["things"])
