"""What the page Review reads: a review as it would stand, the very files of the command, all releases side by side."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from plotly.graph_objects import Figure

from crashpath.dashboard import review_drawn as drawn
from crashpath.dashboard.cli import run
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.page_tables import repeated, unique
from crashpath.dashboard.policy import Policy, policy_in_force
from crashpath.dashboard.review_decide import record, take_back
from crashpath.dashboard.review_files import html_bytes, json_bytes, markdown_bytes
from crashpath.dashboard.review_model import Measure, Review, Verdict
from crashpath.dashboard.review_pictures import bars, rates_by_day, whiskers
from crashpath.dashboard.review_tables import days_table, rates_table
from crashpath.dashboard.review_view import Asked, Offer, Shown, all_releases, before, offers, reviewed
from crashpath.dashboard.review_word import Word, word_of
from crashpath.ingest.failed_read import stale_days
from crashpath.ingest.reviews import looks
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import NoSuchThing, Refused, StoreReadOnly
from crashpath.ingest.tables_counts import StaleDay

HERE = Path(__file__).parent
SAMPLES = runpy.run_path(str(HERE / "review_samples.py"))["SAMPLES"]
make_store = runpy.run_path(str(HERE / "review_stores.py"))["make_store"]
DAY = date(2026, 2, 1)
NOW = datetime(2026, 2, 20, 12, tzinfo=UTC)
DEFAULTS = "the defaults, as there is no policy.toml here"
RULES = Policy().model_dump_json()
ASKED = Asked("2.0", "1.0", None, RULES, DEFAULTS)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with such a store, which nobody writes to."""
    folder = tmp_path_factory.mktemp("review")
    make_store(folder)
    return folder


@pytest.fixture
def fleet(told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A copy of the store, in an empty working folder."""
    (tmp_path / "store.db").write_bytes((told / "store.db").read_bytes())
    monkeypatch.chdir(tmp_path)
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def shown(store: Store, asked: Asked = ASKED, at: datetime = NOW) -> Shown:
    with store.read() as session:
        return reviewed(session, asked, at)


def by_command(store: Store, *more: str) -> int:
    url = store.engine.url.render_as_string()
    return run(["review", "--release", "2.0", "--baseline", "1.0", "--db", url, "--as-of", NOW.isoformat(), *more])


def test_the_files_are_those_of_the_command(
    fleet: Store, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Byte for byte, before the look was recorded and after it."""
    before_it = shown(fleet)
    assert by_command(fleet, "--html", "r.html", "--markdown", "r.md", "--json") == 0
    written = capsysbinary.readouterr().out
    for one in (before_it, shown(fleet)):
        assert html_bytes(one.review) == (tmp_path / "r.html").read_bytes()
        assert markdown_bytes(one.review) == (tmp_path / "r.md").read_bytes()
        assert json_bytes(one.review) == written


def test_showing_is_no_look(fleet: Store) -> None:
    """A review that is shown keeps nothing and has the number that it would have; an unchanged one has its own."""
    one = shown(fleet)
    assert (one.review.looks, one.kept, one.review.earlier) == (1, False, ())
    with fleet.read() as session:
        assert looks(session, "2.0") == ()
    record(fleet, one.review, Policy(), None, NOW)
    again = shown(fleet, at=NOW + timedelta(minutes=5))
    assert (again.review.looks, again.kept) == (1, True)
    other = shown(fleet, Asked("2.0", None, None, RULES, DEFAULTS))
    assert (other.review.looks, other.kept, len(other.review.earlier)) == (2, False, 1)


def test_nothing_is_counted_where_nothing_may_be_written(fleet: Store) -> None:
    """Of a store opened for reading a review can be shown; days that are not counted yet stay so and are said."""
    with fleet.write() as session:
        session.add(StaleDay(day=DAY, touched=1))
    with open_store(fleet.engine.url.render_as_string(), read_only=True) as store:
        review = shown(store).review
        with pytest.raises(StoreReadOnly):
            record(store, review, Policy(), None, NOW)
        with store.read() as session:
            assert stale_days(session) == (DAY,)
    assert any(note.startswith("1 day has failures that are not all counted yet") for note in review.notes)


def test_releases_that_are_offered(fleet: Store) -> None:
    """The ones tried last come first; against each stands the one that was tried before it."""
    with fleet.read() as session:
        offered = offers(session)
    assert [one.release for one in offered] == ["2.0", "1.0"]
    assert offered[0].last_day == DAY + timedelta(days=9)
    assert (before(offered, "2.0"), before(offered, "1.0"), before(offered, "9.9")) == ("1.0", None, None)
    assert before((*offered, Offer("3.0", None, None)), "3.0") is None


def test_what_nobody_knows_is_a_hold(fleet: Store) -> None:
    """A release that the store does not know, and one without a reason for anything else."""
    review = shown(fleet, Asked("9.9", None, None, RULES, DEFAULTS)).review
    assert review.verdict is Verdict.HOLD
    assert "knows nothing of release 9.9" in review.reasons[0].sentence


def test_the_command_is_the_same_review() -> None:
    """Names are quoted for a shell; what was not picked is not named."""
    assert Asked("2.0", None, None, "", "").command == "crashpath review --release 2.0"
    asked = Asked("a b", "$x", "load", "", "")
    assert asked.command == "crashpath review --release 'a b' --baseline '$x' --unit load"


def test_a_word_is_recorded_on_the_look_that_was_seen(fleet: Store) -> None:
    """It holds as the command's own does, and taking it back gives the verdict its place again."""
    made = record(fleet, shown(fleet).review, Policy(), Word(Verdict.HOLD, "kim", "not on a Friday"), NOW)
    assert (made.verdict, made.outcome) == (Verdict.GO, Verdict.HOLD)
    assert shown(fleet).review.outcome is Verdict.HOLD
    assert by_command(fleet, "--json") == 3
    (word,) = made.overrides
    told = take_back(fleet, word.decision, "noor", None, NOW)
    assert told.endswith(f"undo of {word.decision}, override of release 2.0: GO to HOLD.")
    assert by_command(fleet, "--json") == 0
    with pytest.raises(NoSuchThing):
        take_back(fleet, 999, "noor", None, NOW)


def test_a_word_on_what_is_out_of_date_is_refused(fleet: Store) -> None:
    """Where somebody recorded a newer look meanwhile, a person is to see that first; a word without reason is none."""
    old = shown(fleet).review
    later = shown(fleet, Asked("2.0", None, None, RULES, DEFAULTS), NOW + timedelta(minutes=1)).review
    record(fleet, later, Policy(), None, NOW)
    with pytest.raises(Refused, match="since this page was drawn"):
        record(fleet, old, Policy(), Word(Verdict.HOLD, "kim", "no"), NOW)
    with pytest.raises(UsageError, match="a name and a reason"):
        word_of(Verdict.GO, "kim", " ")


def test_all_releases_beside_each_other(fleet: Store) -> None:
    """Each release has its newest recorded look with rate, interval and counts, and the last word on it."""
    record(fleet, shown(fleet).review, Policy(), Word(Verdict.NO_GO, "kim", "because"), NOW)
    with fleet.read() as session:
        table = all_releases(session)
    newest, oldest = table.rows
    assert newest[:4] == ("2.0", "✓ GO", "2026-02-20 12:00 UTC", "1.0")
    assert newest[4] == "0.20 %"
    assert newest[6:8] == ("6 of 3,000 deployments", "NO-GO by kim")
    assert oldest[:2] == ("1.0", "never recorded")


def test_the_policy_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting, else the file that is here, else the defaults; one that cannot be used is refused with its key."""
    monkeypatch.chdir(tmp_path)
    assert policy_in_force(None, None) == (Policy(), DEFAULTS)
    (tmp_path / "policy.toml").write_text("alpha = 0.01\n")
    assert policy_in_force(None, None)[0].alpha == 0.01
    assert policy_in_force(None, str(tmp_path / "policy.toml"))[1] == str(tmp_path / "policy.toml")
    (tmp_path / "policy.toml").write_text("alhpa = 0.01\n")
    with pytest.raises(UsageError, match="alhpa"):
        policy_in_force(None, None)


def test_columns_of_one_name_are_told_apart() -> None:
    """A browser's table takes no two columns of one name; rows that stand under another are named as it is."""
    review: Review = SAMPLES["go"]()
    assert review.main is not None
    names = [column.name for column in days_table(review.main).columns]
    assert len(set(names)) < len(set(unique(names))) == len(names)
    assert {row[0] for row in repeated(rates_table(review.main)).rows} == {str(one) for one in Measure}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_pictures_show_what_the_report_says(name: str) -> None:
    """Every day with a rate is a point at it, days without one stand below the axis, the limit is a line, and no text
    of logs is markup."""
    review: Review = SAMPLES[name]()
    for unit in review.units:
        days = drawn.days(review, unit, Measure.UNANSWERED)
        if days.series:
            figure = rates_by_day(days)
            at = [y for trace in figure.data if trace.mode == "lines+markers" for y in trace.y if y is not None]
            assert at == [point.value for one in days.series for point in one.points if point.value is not None]
            bare = [y for trace in figure.data if trace.mode == "markers" for y in trace.y]
            assert len(bare) == sum(point.value is None for one in days.series for point in one.points)
            assert all(y < 0 for y in bare)
            assert (days.limit is not None) == bool(figure.layout.shapes)
            _inert(figure)
        cohorts = drawn.cohorts(review, unit)
        if cohorts.rows:
            figure = whiskers(cohorts)
            assert len(figure.layout.annotations) == len(cohorts.rows) + (cohorts.limit is not None)
            assert len(figure.data[1].x) == sum(row.value is not None for row in cohorts.rows)
            _inert(figure)
        _inert(bars(drawn.classes(review, unit)))
    _inert(bars(drawn.covered(review)))


def _inert(figure: Figure) -> None:
    """Plotly takes a few tags as markup: there is none but the line break of these pictures."""
    texts = json.dumps(json.loads(figure.to_json()), ensure_ascii=False).replace("<br>", "")
    assert "<" not in texts
    assert "\u202e" not in texts
