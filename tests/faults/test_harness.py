"""The harness itself: a run is a value, what fails is made small, and what proves nothing is not
called green."""

import asyncio
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults import kinds
from faults.checks import CHECKS, ELSEWHERE, Violation, check
from faults.clients import Clients
from faults.history import History, Injected
from faults.nemesis import Nemesis
from faults.pgoutput import Decoder
from faults.plan import OPERATIONS, Fault, Run, Shape, planned
from faults.shrink import Shrinker, ddmin
from faults.story import begun
from faults.verdict import GREEN, INVALID, VARIABLE, VIOLATED, Outcome, Verdict


def test_a_seed_says_all_and_the_text_of_a_run_is_the_run() -> None:
    run = planned(7, 30, list(kinds.LASTS), gap=2)
    assert run == planned(7, 30, list(kinds.LASTS), gap=2)
    assert run != planned(8, 30, list(kinds.LASTS), gap=2)
    assert Run.of(run.text()) == run


def test_a_plan_has_every_kind_and_leaves_time_at_both_ends() -> None:
    run = planned(3, 60, list(kinds.LASTS), gap=1)
    assert {fault.kind for fault in run.faults} == set(kinds.LASTS)
    assert all(3 <= fault.at <= 58 for fault in run.faults)
    assert {op.kind for op in run.workload} == set(OPERATIONS)


def test_every_kind_has_its_blow_and_every_operation_its_client() -> None:
    assert all(callable(getattr(Nemesis, kind)) for kind in kinds.LASTS)
    assert all(callable(getattr(Clients, f"_{kind}")) for kind in OPERATIONS)
    assert set(kinds.CALM) <= set(kinds.LASTS)
    assert set(kinds.LASTS) >= kinds.OUTAGES


def test_every_invariant_is_checked_here_or_said_where() -> None:
    named = {name.split()[0] for name in (*CHECKS, *ELSEWHERE)}
    assert named == {f"I{number}" for number in range(1, 23)}


def test_what_fails_is_made_as_small_as_it_can_be() -> None:
    tried: list[int] = []

    async def fails(items: Sequence[int]) -> bool:
        tried.append(len(items))
        return {3, 17} <= set(items)

    assert asyncio.run(ddmin(range(40), fails)) == [3, 17]
    assert len(tried) < 60


def test_a_failing_run_loses_the_faults_and_the_calls_that_it_does_not_need() -> None:
    run = planned(5, 20, ["cut", "delay", "poison"], gap=1)
    guilty = next(fault for fault in run.faults if fault.kind == "cut")
    call = run.workload[11]

    async def violated(run: Run) -> set[str]:
        return {"I1"} if guilty in run.faults and call in run.workload else set()

    small = asyncio.run(Shrinker(violated, {"I1"}, seconds=60).shrink(run))
    assert small.faults == (guilty,)
    assert small.workload == (call,)


def test_another_invariant_is_another_failure() -> None:
    run = planned(5, 20, ["cut"], gap=4)

    async def violated(run: Run) -> set[str]:
        return {"I2"}

    assert asyncio.run(Shrinker(violated, {"I1"}, seconds=60).shrink(run)) == run


def _outcome(**changes: Any) -> Outcome:
    """A run of one fault in which all went well."""
    changes = {"injected": (Injected("cut", "", 1, 2, True),), **changes}
    history = replace(begun().told(), **changes)
    run = Run(1, Shape(), (), (Fault(1, "cut", 0, 0),))
    return Outcome(run, history, check(history))


def test_a_run_in_which_all_went_well_is_green() -> None:
    assert Verdict([_outcome()]).status == GREEN


def test_a_fault_that_never_fired_makes_a_run_invalid() -> None:
    verdict = Verdict([_outcome(injected=(Injected("cut", "", 1, 2, False),))])
    assert verdict.status == INVALID
    assert "cut was planned and never fired" in verdict.text()


def test_a_run_in_which_hardly_anything_succeeded_is_invalid() -> None:
    story = begun()
    for nth in range(3):
        story.ask("library", f"c-{nth}", "info")
    verdict = Verdict([_outcome(calls=tuple(story.calls))])
    assert verdict.status == INVALID
    assert "only 1 of 4 operations succeeded" in verdict.text()


def test_a_run_that_the_harness_could_not_finish_is_invalid() -> None:
    verdict = Verdict([_outcome()], broken_off=["seed 1: TypeError()"])
    assert verdict.status == INVALID
    assert "INVALID: seed 1: TypeError()" in verdict.text()


def test_a_violation_is_worse_than_an_invalid_run() -> None:
    outcome = _outcome(injected=())
    outcome.found["I1 no acknowledged job is lost"] = [Violation("lost", ())]
    verdict = Verdict([outcome])
    assert verdict.status == VIOLATED
    assert "VIOLATED 1 times" in verdict.text()


def test_a_scene_that_fails_fails_the_whole_and_its_row_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = {"kind": "failover", "injected": 2, "operations": 9, "invariants": 3, "violations": 0}
    verdict = Verdict([_outcome()], [scene])
    assert verdict.status == GREEN
    assert "failover" in verdict.text()
    assert "all together                               3" in verdict.text()
    assert Verdict([_outcome()], [scene], scenes_failed=True).status == VIOLATED
    monkeypatch.setenv(VARIABLE, str(tmp_path / "summary.jsonl"))
    verdict.save()
    rows = [json.loads(line) for line in (tmp_path / "summary.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["cut", "all together"]


def test_rows_are_read_as_the_output_plugin_writes_them() -> None:
    def text(value: str) -> bytes:
        return value.encode() + b"\0"

    def row(*values: str | None) -> bytes:
        cells = [
            b"n" if v is None else b"t" + struct.pack("!I", len(v)) + v.encode() for v in values
        ]
        return struct.pack("!H", len(values)) + b"".join(cells)

    columns = b"".join(b"\1" + text(name) + struct.pack("!II", 25, 0) for name in ("id", "note"))
    relation = b"R" + struct.pack("!I", 9) + text("fairlane") + text("job") + b"d"
    messages = [
        b"B" + struct.pack("!QqI", 5, 0, 77),
        relation + struct.pack("!H", 2) + columns,
        b"I" + struct.pack("!I", 9) + b"N" + row("a", None),
        b"U" + struct.pack("!I", 9) + b"K" + row("a", None) + b"N" + row("b", "moved"),
        b"D" + struct.pack("!I", 9) + b"K" + row("b", None),
        b"C" + struct.pack("!BQQq", 0, 5, 6, 2_000_000),
    ]
    (changes,) = Decoder(0).read(messages)
    assert [(c.table, c.what, dict(c.row)) for c in changes] == [
        ("job", "insert", {"id": "a", "note": None}),
        ("job", "update", {"id": "b", "note": "moved"}),
        ("job", "delete", {"id": "b", "note": None}),
    ]
    assert {(c.lsn, c.xid) for c in changes} == {(6, 77)}
    assert changes[0].at == pytest.approx(946_684_802)


def test_a_history_can_be_kept_for_whoever_looks_into_it(tmp_path: Path) -> None:
    history: History = begun().told()
    history.save(tmp_path)
    lines = (tmp_path / "changes.jsonl").read_text().splitlines()
    assert len(lines) == len(history.changes)
