"""Numbers and words of a release review, so that the same figures stand in every form of the report."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

from crashpath.dashboard.figures import percent, weight
from crashpath.dashboard.inert import inert
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import (
    ClassRow,
    Compared,
    DayRow,
    Estimate,
    Measure,
    Override,
    Rate,
    Reason,
    Review,
    Share,
    Threshold,
    Verdict,
)

MEANING = {
    Measure.UNANSWERED: "nobody answered",
    Measure.PRIMARY: "the main path failed, whoever answered",
    Measure.CONTAINED: "the main path failed and the fallback answered",
}
"""Measures in the order in which they are shown, and what each counts."""
MOST_CHARACTERS = 400
NO_RATE = "no rate"
NONE = "–"
NO_BREACH = "no breach shown"
_MINUS = "−"
_MOST_DIGITS = 8


def clean(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return text of logs or people as one inert line of at most ``most`` characters, cut with an ellipsis."""
    line = " ".join(inert(text.replace("\n", " ")).split())
    if len(line) <= most:
        return line
    kept, blank, rest = line[: most - 1].rpartition(" ")
    return (kept if blank and len(rest) < most // 3 else line[: most - 1]) + "…"  # no figure loses its last digits


def rate_words(rate: Rate | None) -> str:
    """Return ``1.04 %``, with as many digits as its interval has; no rate where nothing was tried, or more failed."""
    if rate is None or rate.rate is None:
        return NO_RATE
    if rate.low is None or rate.high is None:
        return percent(rate.rate)
    return _plain(100 * rate.rate, _shared_digits(100 * rate.rate, 100 * rate.low, 100 * rate.high)) + " %"


def interval_words(rate: Rate | None) -> str:
    """Return ``0.99 to 1.09 %``, nothing without a rate."""
    if rate is None or rate.rate is None or rate.low is None or rate.high is None:
        return ""
    return _percents(rate.rate, rate.low, rate.high) + " %"


def counts_words(rate: Rate | None) -> str:
    """Return ``1,560 of 150,000``."""
    return "" if rate is None else f"{rate.failures:,} of {rate.attempts:,}"


def rate_in_full(rate: Rate) -> str:
    """Return ``1.04 % (0.99 to 1.09 %), 1,560 of 150,000``."""
    between = interval_words(rate)
    return f"{rate_words(rate)}{f' ({between})' if between else ''}, {counts_words(rate)}"


def difference_words(difference: Estimate | None) -> str:
    """Return ``+0.52 points`` or ``−13.3 points``, of percent."""
    if difference is None:
        return NONE
    digits = _shared_digits(100 * difference.value, 100 * difference.low, 100 * difference.high)
    return f"{_sign(100 * difference.value, digits)} points"


def difference_interval(difference: Estimate | None) -> str:
    """Return ``−13.4 to −13.1``."""
    if difference is None:
        return ""
    digits = _shared_digits(100 * difference.value, 100 * difference.low, 100 * difference.high)
    return f"{_sign(100 * difference.low, digits)} to {_sign(100 * difference.high, digits)}"


def ratio_words(ratio: Estimate | None) -> str:
    """Return ``0.0727 times``."""
    if ratio is None:
        return NONE
    return f"{_plain(ratio.value, _ratio_digits(ratio))} times"


def ratio_interval(ratio: Estimate | None) -> str:
    """Return ``0.0699 to 0.0756``."""
    if ratio is None:
        return ""
    digits = _ratio_digits(ratio)
    return f"{_plain(ratio.low, digits)} to {_plain(ratio.high, digits)}"


def reduction_words(ratio: Estimate | None) -> str:
    """Return ``92.7 % lower (92.4 to 93.0)``, which is 1 - ratio; nothing where the release is not better."""
    if ratio is None or ratio.value >= 1:
        return ""
    value, low, high = 1 - ratio.value, 1 - ratio.high, 1 - ratio.low
    words = _plain(100 * value, _shared_digits(100 * value, 100 * low, 100 * high))
    return f"{words} % lower ({_percents(value, low, high)})"


def share_words(share: float | None) -> str:
    """Return a share of something, a dash where there is nothing that it could be a share of."""
    return NONE if share is None else percent(share)


def p_words(p: float | None) -> str:
    """Return ``p = 0.012``, or that it is less than one can tell apart."""
    if p is None:
        return ""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}" if p < 0.995 else "p = 1"


def weight_words(e_value: float | None) -> str:
    """Return the weight of the evidence, nothing where the reason is no test."""
    if e_value is None or math.isnan(e_value):
        return ""
    return weight(e_value)


def needed_words(needed: int | None, unit: str | None) -> str:
    """Return ``about 12,300 more deployments``; nothing where no number is known or none is needed."""
    return f"about {many(needed, 'more ' + (unit or 'attempt'))}" if needed else ""


def stamp(at: datetime) -> str:
    """Return a time to the minute in UTC, and that it is UTC."""
    utc = at.astimezone(UTC) if at.tzinfo else at
    return f"{utc:%Y-%m-%d %H:%M} UTC"


def days_words(first: date | None, last: date | None) -> str:
    """Return ``2026-11-01 to 2026-11-30 (UTC)``."""
    if first is None or last is None:
        return "no day with attempts or failures"
    return f"{first.isoformat()} (UTC)" if first == last else f"{first.isoformat()} to {last.isoformat()} (UTC)"


def verdict_words(review: Review) -> str:
    """Return the verdict, and who put what in its place and why: ``NO-GO, overridden to GO by kim: why``."""
    decided = standing(review)
    if decided is not None:
        who, why = clean(decided.who, 80), clean(decided.why)
        if review.outcome is review.verdict:
            return f"{review.verdict}, and by the word of {who}, which changes nothing: {why}"
        return f"{review.verdict}, overridden to {review.outcome} by {who}: {why}"
    return str(review.verdict) if review.outcome is review.verdict else f"{review.verdict}, taken as {review.outcome}"


def standing(review: Review) -> Override | None:
    """Return the newest override that stands and covers all reasons that there are now."""
    found = [one for one in review.overrides if one.holds and not one.undone and one.verdict is review.outcome]
    return max(found, key=lambda one: one.decision, default=None)


def override_words(one: Override) -> str:
    """Return an override as a sentence, with what became of it."""
    state = "undone" if one.undone else "stands" if one.holds else "does not cover the reasons that there are now"
    return (
        f"decision {one.decision}, {stamp(one.at)}: {one.over} overridden to {one.verdict} by {clean(one.who, 80)}: "
        f"{clean(one.why)} ({state})"
    )


def subject_line(review: Review) -> str:
    """Return what was looked at: release, baseline, unit."""
    against = "without a baseline" if review.baseline is None else f"against {clean(review.baseline, 80)}"
    unit = "no unit is told" if review.unit is None else f"counted in {review.unit}s"
    return f"release {clean(review.release, 80)} {against}, {unit}"


def look_line(review: Review) -> str:
    """Return when it was looked at, and at which days."""
    return f"{days_words(review.first_day, review.last_day)}, look {review.looks:,} at {stamp(review.at)}"


def reason_title(reason: Reason) -> str:
    """Return the rule and what it is about."""
    return f"{reason.rule} · {clean(reason.subject, 120)}" if reason.subject else reason.rule


def reason_weight(reason: Reason) -> str:
    """Return the weight of the evidence and what is still needed, in the unit that the sentence names."""
    needed = needed_words(reason.attempts_needed, None)
    return ", ".join(filter(None, (weight_words(reason.e_value), f"needs {needed}" if needed else "")))


def no_reason(review: Review) -> str:
    """Return what stands where there is no reason against a GO."""
    if review.verdict is Verdict.GO:
        return "Everything that the policy asks for is shown, and no breach is."
    return "No reason was given."


def met_words(threshold: Threshold) -> str:
    """Return whether a rule of the policy is shown to be met; of a guard only a breach can be shown."""
    return {True: NO_BREACH if threshold.guard else "met", False: "not met", None: "not shown yet"}[threshold.met]


def class_name(row: ClassRow) -> str:
    """Return the class, or the headline on the row of a whole one."""
    return clean(row.headline if row.failure_class is None else row.failure_class, 80)


def attempts_words(day: DayRow) -> str:
    """Return the attempts of a day, or that none were told."""
    return "none told" if day.attempts is None else f"{day.attempts:,}"


def covered_words(share: Share) -> str:
    """Return a share of coverage rounded down, as in the coverage report: 100 % is said of all alone."""
    if not share.total:
        return "no unit"
    tenths = share.covered * 1000 // share.total
    return f"{tenths // 10}.{tenths % 10} %"


def method_lines(review: Review) -> list[str]:
    """Return the policy, the chance of a false verdict and how verdict and intervals were computed."""
    chance = f"Chance of a false verdict, however often one looks: {100 * review.alpha:g} %."
    return [f"Policy: {clean(review.policy, 200)}.", chance, *(clean(one) for one in review.method)]


def rate_lines(compared: Compared) -> tuple[tuple[str, str, str, str], ...]:
    """Return release, baseline, difference and ratio: name, value, interval, and counts or the reduction."""
    release, baseline = compared.release, compared.baseline
    found = [("release", rate_words(release), interval_words(release), counts_words(release))]
    if baseline is not None:
        found.append(("baseline", rate_words(baseline), interval_words(baseline), counts_words(baseline)))
    if compared.difference is not None:
        found.append(
            ("difference", difference_words(compared.difference), difference_interval(compared.difference), "")
        )
    if compared.ratio is not None:
        ratio = compared.ratio
        found.append(("ratio", ratio_words(ratio), ratio_interval(ratio), reduction_words(ratio)))
    return tuple(found)


def _percents(value: float, low: float, high: float) -> str:
    digits = _shared_digits(100 * value, 100 * low, 100 * high)
    return f"{_plain(100 * low, digits)} to {_plain(100 * high, digits)}"


def _shared_digits(value: float, low: float, high: float) -> int:
    """Return the digits of a value in percent, more of them where its limits would else be one number."""
    size = abs(value) or max(abs(low), abs(high))
    return _apart(_few(size), low, high)


def _ratio_digits(ratio: Estimate) -> int:
    """Return the digits of a ratio: three of its own, more of them where its limits would else be one number."""
    digits = max(0, min(_MOST_DIGITS, 2 - _magnitude(ratio.value or ratio.high)))
    return _apart(digits, ratio.low, ratio.high)


def _apart(digits: int, low: float, high: float) -> int:
    while digits < _MOST_DIGITS and 0 < (high - low) * 10**digits < 2:
        digits += 1
    return digits


def _few(size: float) -> int:
    """Return the digits after the point, as ``figures.percent`` chooses them."""
    return 1 if size >= 9.995 or size == 0 else 2 if size >= 0.1 else min(_MOST_DIGITS, 2 - _magnitude(size))


def _magnitude(size: float) -> int:
    return math.floor(math.log10(abs(size))) if size and math.isfinite(size) else 0


def _plain(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    if math.isinf(value):
        return "∞"
    words = f"{abs(value):,.{digits}f}"
    if float(words.replace(",", "")) == 0:  # a limit that is not zero does not read as one
        words = f"{abs(value):.{max(digits, min(12, -_magnitude(value)))}f}"
    return f"{_MINUS if value < 0 else ''}{words}"


def _sign(value: float, digits: int) -> str:
    return f"+{_plain(value, digits)}" if value > 0 else _plain(value, digits)
