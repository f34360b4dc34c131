"""The harness itself: a run is a value, what fails is made small, and what proves nothing is not
called green."""

import asyncio
import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fairlane.core import calls
from faults import kinds, summary
from faults.account import Account
from faults.blows.network import BEAT
from faults.bounds import ALONE
from faults.checks import CHECKS, ELSEWHERE, Violation, check
from faults.clients import Clients
from faults.history import History, Injected
from faults.nemesis import Nemesis
from faults.parts import calm
from faults.pgoutput import Decoder
from faults.plan import OPERATIONS, Fault, Run, Shape, planned
from faults.scene import scene
from faults.shrink import Shrinker, ddmin
from faults.story import begun
from faults.table import table
from faults.verdict import GREEN, INVALID, VIOLATED, Verdict


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


def test_in_a_calm_run_each_has_the_system_to_itself() -> None:
    """One that lasted ran into the next, and what it did to jobs was not measured."""
    for seed in range(20):
        faults = calm(seed, 90, kinds.CALM, 40).faults
        assert [fault.kind for fault in faults] == list(kinds.CALM)
        for one, other in itertools.pairwise(faults):
            assert other.at - one.at - one.seconds > Shape().lease + 2 + ALONE


def test_the_heartbeats_that_are_delayed_are_those_that_a_worker_sends() -> None:
    """They had another name by then: the fault waited for what nobody said, and never fired."""
    assert BEAT in calls.beat(uuid4()).sql


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


def _account(run: Run | None = None, **changes: Any) -> Account:
    """Of a run of one fault in which all went well."""
    changes = {"injected": (Injected("cut", "", 1, 2, True),), **changes}
    history = replace(begun().told(), **changes)
    run = run or Run(1, Shape(), (), (Fault(1, "cut", 0, 0),))
    return Account.of(run, history, check(history))


def test_a_run_in_which_all_went_well_is_green() -> None:
    assert Verdict([_account()]).status == GREEN


def test_a_fault_that_never_fired_makes_a_run_invalid() -> None:
    verdict = Verdict([_account(injected=(Injected("cut", "", 1, 2, False),))])
    assert verdict.status == INVALID
    assert "cut was planned and never fired" in table(verdict)


def test_a_fault_that_fired_in_another_run_has_fired() -> None:
    verdict = Verdict([_account(injected=(Injected("cut", "", 1, 2, False),)), _account()])
    assert verdict.status == GREEN


def test_a_run_in_which_hardly_anything_succeeded_is_invalid() -> None:
    story = begun()
    for nth in range(3):
        story.ask("library", f"c-{nth}", "info")
    verdict = Verdict([_account(calls=tuple(story.calls))])
    assert verdict.status == INVALID
    assert "only 1 of 4 operations succeeded" in table(verdict)


def test_a_run_that_the_harness_could_not_finish_is_invalid() -> None:
    verdict = Verdict([_account()], broken_off=["seed 1: TypeError()"])
    assert verdict.status == INVALID
    assert "INVALID: seed 1: TypeError()" in table(verdict)


def test_a_violation_is_worse_than_an_invalid_run() -> None:
    history = replace(begun().told(), injected=())
    found = {**check(history), "I1 no acknowledged job is lost": [Violation("lost", ())]}
    run = Run(1, Shape(), (), (Fault(1, "cut", 0, 0),))
    verdict = Verdict([Account.of(run, history, found)])
    assert verdict.status == VIOLATED
    assert "VIOLATED 1 times" in table(verdict)


def test_a_bound_that_a_calm_run_was_to_measure_and_did_not_makes_it_invalid() -> None:
    """No figure is not a good figure: it counted as met."""
    killed = Injected("kill_worker", "", 1, 2, True, {"pids": [99], "at": 1})
    plan = Run(1, Shape(), (), (Fault(1, "kill_worker", 0, 0),), is_calm=True)
    verdict = Verdict([_account(plan, injected=(killed,))])
    assert verdict.status == INVALID
    assert "INVALID: kill -9 of a worker: its jobs claimable: not measured" in table(verdict)
    among_others = Verdict([_account(replace(plan, is_calm=False), injected=(killed,))])
    assert among_others.status == GREEN


def test_a_bound_that_was_missed_while_the_machine_stood_still_is_neither_met_nor_missed() -> None:
    plan = Run(1, Shape(), (), (Fault(1, "kill_worker", 0, 0),), is_calm=True)
    account = replace(_account(plan), fired={"kill_worker": 1}, figures={"kill": [3.5, 60.0]})
    assert Verdict([account]).status == VIOLATED
    still = replace(account, lag=account.seconds)
    assert Verdict([still]).status == INVALID
    assert "busy machine" in table(Verdict([still]))
    again = replace(account, figures={"kill": [3.5]})
    assert Verdict([still, again]).status == GREEN
    assert Verdict([account, again]).status == VIOLATED


def test_a_scene_that_fails_fails_the_whole_and_its_row_is_in_the_table() -> None:
    scene = {"kind": "failover", "injected": 2, "operations": 9, "invariants": 3, "violations": 0}
    verdict = Verdict([_account()], [scene])
    assert verdict.status == GREEN
    assert _row(verdict, "failover") == ["2", "9", "3", "0"]
    assert Verdict([_account()], [scene], failed=["test_failover"]).status == VIOLATED
    assert Verdict([_account()], [{**scene, "violations": 1}]).status == VIOLATED


def test_what_runs_injected_is_told_apart_from_what_scenes_did() -> None:
    """They were one sum: hundreds of schedules looked like faults in a running system."""
    scene = {"kind": "orders", "injected": 900, "operations": 9, "invariants": 3, "violations": 0}
    verdict = Verdict([_account(), _account()], [scene])
    assert _row(verdict, "all runs") == ["2", "2", str(2 * len(CHECKS)), "0"]
    assert _row(verdict, "all scenes, schedules and attacks") == ["900", "9", "3", "0"]


def test_a_violation_is_told_of_its_run_and_not_of_a_kind_of_fault() -> None:
    """The row of every kind said 0, whatever its run had shown."""
    found = replace(_account(), found={"I1 no acknowledged job is lost": 2})
    assert _row(Verdict([found]), "cut")[-1] == "–"
    assert _row(Verdict([found]), "all runs")[-1] == "2"


def _row(verdict: Verdict, kind: str) -> list[str]:
    """Its figures in the table."""
    rows = [line for line in table(verdict).splitlines() if line.startswith(f"{kind} ")]
    assert len(rows) == 1, table(verdict)
    return rows[0].removeprefix(kind).split()


def test_what_was_played_in_parts_adds_up_to_what_was_played_at_once() -> None:
    scene = {"kind": "failover", "injected": 2, "operations": 9, "invariants": 3, "violations": 0}
    parts = [Verdict([_account()]), Verdict([_account()], [scene]), Verdict(lacking={"a": "b"})]
    kept = Verdict.sum(Verdict.of(each.text()) for each in parts)
    assert table(kept) == table(Verdict([_account(), _account()], [scene], lacking={"a": "b"}))


def test_scenes_tell_what_they_did_what_failed_and_what_the_machine_does_not_permit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(summary.VARIABLE, str(tmp_path / "lines"))
    with scene("failover") as played:
        played.injected, played.operations = 1, 2
        played.check("it holds", [])
    summary.tell_failed("test_one")
    summary.tell_failed("test_one")
    summary.tell_lacking("full_disk", "no mount")
    told = summary.told(tmp_path / "lines")
    assert [row["kind"] for row in told.scenes] == ["failover"]
    assert (told.failed, told.lacking) == (["test_one"], {"full_disk": "no mount"})


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
