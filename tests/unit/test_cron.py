"""Cron expressions name the moments that a walk through every minute finds, where clocks change
too."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.scheduler.cron import Cron, CronInvalid
from support.crontab import Crontab

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca")
OTHERS = ("UTC", "America/Sao_Paulo", "Asia/Kathmandu", "America/St_Johns", "Africa/Cairo")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# What people meet, told by hand; times are UTC, in 2026. New York jumps at 07:00 on 8 March and
# falls back at 06:00 on 1 November; Berlin at 01:00 on 29 March and 25 October; Lord Howe by half
# an hour: back at 15:00 on 4 April, forward at 15:30 on 3 October; Casablanca goes back an hour for
# Ramadan, at 02:00 on 15 February, and forward again at 02:00 on 22 March.
TABLE = """
# skipped: once, at the first moment after it
30 2 * * * | America/New_York | 03-08T00:00 | 03-08T07:00 03-09T06:30
30 2 * * * | Europe/Berlin | 03-29T00:00 | 03-29T01:00 03-30T00:30
15 2 * * * | Australia/Lord_Howe | 10-03T00:00 | 10-03T15:30 10-04T15:15
30 2 * * * | Africa/Casablanca | 03-22T00:00 | 03-22T02:00 03-23T01:30
# several times in one gap are one run
0,20,40 2 * * * | Europe/Berlin | 03-29T00:30 | 03-29T01:00 03-30T00:00
# doubled: the first time only
30 1 * * * | America/New_York | 11-01T00:00 | 11-01T05:30 11-02T06:30
30 2 * * * | Europe/Berlin | 10-25T00:00 | 10-25T00:30 10-26T01:30
45 1 * * * | Australia/Lord_Howe | 04-04T00:00 | 04-04T14:45 04-05T15:15
30 2 * * * | Africa/Casablanca | 02-15T00:00 | 02-15T01:30 02-16T02:30
# what counts the hours leaves none out and runs through both
0 * * * * | America/New_York | 03-08T05:30 | 03-08T06:00 03-08T07:00 03-08T08:00
0 * * * * | America/New_York | 11-01T04:30 | 11-01T05:00 11-01T06:00 11-01T07:00
*/30 * * * * | Australia/Lord_Howe | 04-04T14:30 | 04-04T15:00 04-04T15:30 04-04T16:00
*/30 1 * * * | America/New_York | 11-01T00:00 | 11-01T05:00 11-01T05:30 11-01T06:00 11-01T06:30
*/30 2 * * * | Europe/Berlin | 03-29T00:00 | 03-30T00:00 03-30T00:30
"""
CASES = [
    [part.strip() for part in line.split("|")]
    for line in TABLE.strip().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("text", "zone", "after", "times"), CASES)
def test_where_clocks_change(text: str, zone: str, after: str, times: str) -> None:
    start, expected = utc(f"2026-{after}"), [utc(f"2026-{each}") for each in times.split()]
    found = list(islice(Cron.read(text, zone).times(start), len(expected)))
    assert found == expected
    walked = Crontab(text).walk(zone, start, expected[-1])
    assert list(walked) == expected, "the oracle disagrees"


EXPRESSIONS = (
    "0 0 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "5 3 * * *",
    "0,15,30,45 1-3 * * *",
    "*/15 * * * *",
    "0 */2 * * *",
    "*/7 2 * * *",
    "59 23 * * *",
    "0 12 L * *",
    "45 1 * * 0",
)


@pytest.mark.parametrize("zone", [*ZONES, *OTHERS])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_whole_year_is_as_the_oracle_walks_it(text: str, zone: str) -> None:
    """Only the days about a change are walked: the others are alike."""
    cron, oracle = Cron.read(text, zone), Crontab(text)
    for day in changes(zone, 2026):
        start, end = day - timedelta(days=2), day + timedelta(days=2)
        assert cron.between(start, end) == list(oracle.walk(zone, start, end)), f"{zone} {day}"


def changes(zone: str, year: int) -> list[datetime]:
    from zoneinfo import ZoneInfo

    found = []
    moment, last = utc(f"{year}-01-01"), None
    while moment.year == year:
        offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
        if last is not None and offset != last:
            found.append(moment)
        last = offset
        moment += timedelta(hours=12)
    return found or [utc(f"{year}-02-28")]


def test_the_four_zones_do_change() -> None:
    for zone in ZONES:
        assert len(changes(zone, 2026)) == 2, zone


def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, high)
    terms = [
        number.map(str),
        span,
        st.tuples(span, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.tuples(number, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    ]
    if names:
        terms.append(st.sampled_from(names))
    some = st.lists(st.one_of(terms), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), step.map(lambda n: f"*/{n}"), some)


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
EXPRESSION = st.tuples(
    field(0, 59),
    field(0, 23),
    st.one_of(field(1, 31), st.just("L")),
    st.one_of(st.just("*"), field(1, 12, MONTHS)),
    st.one_of(
        field(0, 7, WEEKDAYS),
        st.integers(0, 6).map(lambda n: f"{n}L"),
        st.tuples(st.integers(0, 6), st.integers(1, 5)).map(lambda p: f"{p[0]}#{p[1]}"),
    ),
).map(" ".join)
MOMENT = st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1), timezones=st.just(UTC))
NEAR = st.sampled_from(
    [
        day
        for zone in (*ZONES, *OTHERS)
        for year in (2025, 2026, 2027)
        for day in changes(zone, year)
    ]
).flatmap(lambda day: st.integers(-36, 36).map(lambda hours: day + timedelta(hours=hours)))


@settings(max_examples=200, deadline=None)
@given(EXPRESSION, st.sampled_from([*ZONES, *OTHERS]), st.one_of(MOMENT, NEAR))
def test_any_expression_names_what_a_walk_finds(text: str, zone: str, after: datetime) -> None:
    try:
        cron = Cron.read(text, zone)
    except CronInvalid:
        # Such as the 31st of February: four years have none.
        quarter = Crontab(text).days(datetime(2024, 1, 1), 4 * 366)
        assert not any(quarter)
        return
    until = after + timedelta(days=2)
    expected = list(Crontab(text).walk(zone, after, until))
    assert cron.between(after, until) == expected
    # From wherever it is taken up again.
    for moment in expected[:3]:
        following = [each for each in expected if each > moment]
        assert cron.between(moment, until) == following
    found, more = cron.newest(after, until, 5)
    assert found == expected[-5:]
    assert more is (len(expected) > 5)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 JAN *"),
        ("@annually", "0 0 1 1 *"),
        ("@Daily", "0 0 * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("5-5/2 3-3/1 * * MON-MON/3", "5 3 * * 1"),
        ("0 9-17/4 * jan-mar mon-fri", "0 9,13,17 * 1-3 1-5"),
    ],
)
def test_two_ways_to_say_the_same(text: str, same: str) -> None:
    start = utc("2026-01-01T00:00")
    assert list(islice(Cron.read(text).times(start), 20)) == list(
        islice(Cron.read(same).times(start), 20)
    )


@pytest.mark.parametrize(
    ("text", "zone", "why"),
    [
        ("0 0 31 2 *", "UTC", "never comes"),
        ("0 0 30 2 *", "UTC", "never comes"),
        ("0 0 31 4,6,9,11 *", "UTC", "never comes"),
        ("60 * * * *", "UTC", "minute"),
        ("* 24 * * *", "UTC", "hour"),
        ("* * 0 * *", "UTC", "day-of-month"),
        ("* * * 13 *", "UTC", "month"),
        ("* * * * 8", "UTC", "day-of-week"),
        ("*/0 * * * *", "UTC", "minute"),
        ("5-1 * * * *", "UTC", "minute"),
        ("* * * *", "UTC", "five fields"),
        ("0 * * * * *", "UTC", "five fields"),
        ("", "UTC", "five fields"),
        ("@reboot", "UTC", "five fields"),
        ("* * * * MONDAY", "UTC", "day-of-week"),
        ("٣ * * * *", "UTC", "five fields"),
        ("0" * 300 + " * * * *", "UTC", "at most"),
        ("* * * * *", "Mars/Olympus", "no time zone"),
        ("* * * * *", "europe/berlin", "no time zone"),
        ("* * * * *", "", "no time zone"),
        ("* * * * *", "../../etc/passwd", "no time zone"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(text: str, zone: str, why: str) -> None:
    with pytest.raises(CronInvalid, match=why):
        Cron.read(text, zone)


def test_a_rare_day_is_found() -> None:
    assert Cron.read("0 0 29 2 *").after(utc("2096-03-01")) == utc("2104-02-29")
    assert Cron.read("0 0 * 2 MON#5").after(utc("2026-01-01")) == utc("2044-02-29")


def test_a_day_that_a_country_left_out_runs_after_it() -> None:
    """Samoa had no 30 December 2011."""
    cron = Cron.read("0 8 * * *", "Pacific/Apia")
    found = list(islice(cron.times(utc("2011-12-29T12:00")), 3))
    assert found == [utc("2011-12-29T18:00"), utc("2011-12-30T10:00"), utc("2011-12-30T18:00")]
