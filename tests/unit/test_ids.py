"""Ids: in the order they were made, and safe to read out over the telephone."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import ids
from fairlane.errors import IdInvalid
from fairlane.ids import SYMBOLS, parse_id, short_id, uuid7

# What people write for a symbol that they mean: those are read, not refused.
ALIKE = {"0": "0oO", "1": "1iIlL"}


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_it() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000

    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert before <= made.int >> 80 <= after + 1


def test_ids_of_one_process_sort_in_the_order_they_were_made() -> None:
    made = [uuid7() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_threads_share_the_order() -> None:
    def some(_: int) -> list[UUID]:
        return [uuid7() for _ in range(2000)]

    with ThreadPoolExecutor(4) as threads:
        lots = list(threads.map(some, range(4)))

    assert all(lot == sorted(lot) for lot in lots)
    assert len({made for lot in lots for made in lot}) == 8000


def test_a_clock_that_is_set_back_does_not_turn_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert first < uuid7() < uuid7()


def test_a_fork_in_the_middle_of_making_one_does_not_block_the_child() -> None:
    with ids._lock:
        ids._renew()
        maker = threading.Thread(target=uuid7, daemon=True)
        maker.start()
        maker.join(5)

        assert not maker.is_alive()


@given(st.uuids())
def test_every_form_of_an_id_leads_back_to_it(job_id: UUID) -> None:
    short = short_id(job_id)

    assert len(short) == 27
    forms: list[str | UUID] = [job_id, str(job_id), job_id.hex, str(job_id).upper(), f" {job_id}\n"]
    forms += [short, short.lower(), f" {short} ", f"{short[:5]}-{short[5:]}"]
    forms += [short.replace("0", "O").replace("1", "l")]
    assert {parse_id(form) for form in forms} == {job_id}


@given(st.uuids(), st.uuids())
def test_short_ids_sort_as_ids_do(one: UUID, other: UUID) -> None:
    digits = {symbol: position for position, symbol in enumerate(SYMBOLS)}

    def order(job_id: UUID) -> list[int]:
        return [digits[symbol] for symbol in short_id(job_id)[:-1]]

    assert (order(one) < order(other)) == (one < other)


@given(st.uuids(), st.integers(0, 26), st.characters())
def test_any_one_mistyped_character_is_refused(job_id: UUID, place: int, typed: str) -> None:
    short = short_id(job_id)
    meant = short[place]
    if typed in ALIKE.get(meant, "") or typed.upper() == meant:
        return

    refused(short[:place] + typed + short[place + 1 :])


@given(st.uuids(), st.integers(0, 26), st.sampled_from(SYMBOLS))
def test_any_one_wrong_symbol_is_refused(job_id: UUID, place: int, typed: str) -> None:
    short = short_id(job_id)
    if typed != short[place]:
        refused(short[:place] + typed + short[place + 1 :])


@given(st.uuids(), st.integers(0, 25))
def test_two_neighbours_in_the_wrong_order_are_refused(job_id: UUID, place: int) -> None:
    short = short_id(job_id)
    one, other = short[place], short[place + 1]
    if one != other:
        refused(short[:place] + other + one + short[place + 2 :])


@given(st.uuids(), st.integers(0, 26))
def test_a_character_too_few_or_too_many_is_refused(job_id: UUID, place: int) -> None:
    short = short_id(job_id)

    refused(short[:place] + short[place + 1 :])
    refused(short[:place] + "7" + short[place:])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "job-7",
        "١٢٣٤٥٦٧٨" * 4,
        "0190b5a0_0000_7000_8000_000000000000",
        "0190b5a0-0000-7000-8000-00000000000",
        "0190b5a0-00007000-8000-000000000000",
        "{0190b5a0-0000-7000-8000-000000000000",
        "0190b5a0-0000-7000-8000-00000000000g",
        None,
        7,
        b"0190b5a0-0000-7000-8000-000000000000",
    ],
)
def test_what_is_no_id_is_refused_in_one_line(text: Any) -> None:
    assert "\n" not in refused(text)


@pytest.mark.parametrize(("meant", "typed"), [("S", "\u017f"), ("1", "\u0131"), ("K", "\u212a")])
def test_a_letter_that_only_looks_or_sounds_alike_is_refused(meant: str, typed: str) -> None:
    """Their capitals, or what they are the capitals of, are letters of ours."""
    short = next(each for each in map(short_id, map(UUID, _hexes())) if meant in each)

    refused(short.replace(meant, typed, 1))
    refused(short.lower().replace(meant.lower(), typed, 1))


def test_a_long_text_is_not_repeated_whole() -> None:
    assert len(refused("x" * 10_000)) < 200


def _hexes() -> Iterator[str]:
    return (f"{number:032x}" for number in range(1000))


def refused(text: Any) -> str:
    with pytest.raises(IdInvalid) as error:
        parse_id(text)
    return str(error.value)
