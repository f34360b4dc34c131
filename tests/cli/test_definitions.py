"""fairlane definitions: files are applied whole or not at all, and limits change while jobs run."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from cli.calling import Call, Floor
from fairlane.core.json import dumps
from fairlane.definitions import apply
from fairlane.definitions.check import Written, check_all
from fairlane.definitions.rows import queues
from fairlane.errors import DefinitionInvalid

SYNC = """\
definitions:
  - key: sync-dropbox
    version: "1"
    description: Sync provider updates for a tenant
    executor: command
    command:
      argv: [zoltag, sync-dropbox, --tenant-id, "{tenant.id}", --path, "{payload.path_prefix}"]
      env: {MODE: nightly}
      success_codes: [0]
      retry_codes: [75]
    arg_schema:
      type: object
      properties: {path_prefix: {type: string, default: /}}
      additionalProperties: false
    result_schema: null
    queue: default
    timeout_seconds: 3600
    max_attempts: 3
    retry_delays: [60, 300, 900]
    max_running: null
    max_running_per_tenant: null
    reuse: false
    dead_letter: true
    redact: [/token]
    is_active: true
  - key: solve
    executor: http
    http: {method: POST, url: "https://app.example/gh/{definition}:{version}/solve"}
"""


def written(place: Path, text: str, name: str = "defs.yaml") -> str:
    place.joinpath(name).write_text(text)
    return name


def rows(floor: Floor) -> list[Any]:
    return floor.fetch("select to_jsonb(d) from fairlane.definition d order by key, version")


def a_command(key: str = "sync", **fields: Any) -> dict[str, Any]:
    return {"key": key, "executor": "command", "command": {"argv": ["true"]}, **fields}


def a_file(place: Path, *definitions: dict[str, Any], name: str = "defs.yaml") -> str:
    return written(place, yaml.safe_dump({"definitions": list(definitions)}), name)


# Applying ------------------------------------------------------------------------------------


def test_the_file_of_the_contract_is_applied_and_shown_as_it_was_written(
    fairlane: Call, anywhere: Path
) -> None:
    answer = fairlane("definitions", "apply", written(anywhere, SYNC))

    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "+ sync-dropbox 1: created",
        "+ solve 1: created",
        "2 created, 0 changed, 0 same",
    ]
    asked = yaml.safe_load(SYNC)["definitions"][0]
    shown = fairlane("definitions", "show", "sync-dropbox", "--json").json
    assert {name: shown[name] for name in asked} == asked
    assert (shown["revision"], shown["set_live"]) == (1, [])
    assert {"id", "created_at", "updated_at"} <= shown.keys()


def test_the_same_again_is_the_same(fairlane: Call, floor: Floor, anywhere: Path) -> None:
    file = written(anywhere, SYNC)
    fairlane("definitions", "apply", file)
    before = rows(floor)

    answer = fairlane("definitions", "apply", file)

    assert answer.out.splitlines()[-1] == "0 created, 0 changed, 2 same"
    assert rows(floor) == before
    assert floor.one("select count(*) from fairlane.audit") == 2


def test_what_changes_is_told_field_by_field(fairlane: Call, floor: Floor, anywhere: Path) -> None:
    a_file(anywhere, a_command(timeout_seconds=60, arg_schema={"type": "object"}))
    fairlane("definitions", "apply", "defs.yaml")
    changed = a_command(timeout_seconds=90, redact=["/token"])
    changed["command"] = {"argv": ["true", "--all"]}
    a_file(anywhere, changed)

    answer = fairlane("definitions", "apply", "defs.yaml")

    assert answer.out.splitlines() == [
        "~ sync 1: changed",
        '    /command/argv: ["true"] → ["true","--all"]',
        "    /timeout_seconds: 60 → 90",
        '    /redact: [] → ["/token"]',
        "0 created, 1 changed, 0 same",
    ]
    actor = floor.one("select actor from fairlane.audit order by id desc limit 1")
    assert actor.startswith("cli:")


def test_a_dry_run_tells_the_same_and_changes_nothing(
    fairlane: Call, floor: Floor, anywhere: Path
) -> None:
    fairlane("definitions", "apply", a_file(anywhere, a_command(max_running=3)))
    before = rows(floor)
    file = a_file(anywhere, a_command(max_running=5), a_command("other"))

    dry = fairlane("definitions", "apply", file, "--dry-run")

    assert rows(floor) == before
    assert floor.one("select count(*) from fairlane.audit") == 1
    assert dry.err == "nothing was changed: this was a dry run\n"
    assert fairlane("definitions", "apply", file).out == dry.out
    assert len(rows(floor)) == 2


def test_programs_get_each_definition_and_what_became_of_it(fairlane: Call, anywhere: Path) -> None:
    fairlane("definitions", "apply", a_file(anywhere, a_command(max_running=3)))
    file = a_file(anywhere, a_command(max_running=5), a_command("new"), name="defs.yml")

    answer = fairlane("definitions", "apply", file, "--json")

    assert answer.err == ""
    assert answer.json["dry_run"] is False
    changed, created = answer.json["items"]
    assert (changed["key"], changed["change"], changed["revision"]) == ("sync", "changed", 2)
    assert changed["differences"] == [{"pointer": "/max_running", "old": 3, "new": 5}]
    assert (created["key"], created["change"], created["differences"]) == ("new", "created", [])
    assert fairlane("definitions", "show", "new", "--json").json.items() <= created.items()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("defs.toml", '[[definitions]]\nkey = "sync"\ncommand = { argv = ["true"] }\n'),
        ("defs.json", dumps({"definitions": [a_command()]})),
        ("DEFS.YML", "definitions: [{key: sync, command: {argv: ['true']}}]"),
    ],
)
def test_a_file_is_read_by_its_name(fairlane: Call, anywhere: Path, name: str, text: str) -> None:
    answer = fairlane("definitions", "apply", written(anywhere, text, name))

    assert (answer.status, answer.out.splitlines()[0]) == (0, "+ sync 1: created")


def test_a_file_may_come_by_stdin(fairlane: Call) -> None:
    as_yaml = fairlane("definitions", "apply", "-", stdin=SYNC.encode())
    as_toml = fairlane(
        *("definitions", "apply", "-", "--format", "toml"), stdin=b'[[definitions]]\nkey = "t"\n'
    )

    assert (as_yaml.status, as_toml.status) == (0, 0)
    assert len(fairlane("definitions", "list", "--json").json["items"]) == 3


def test_one_wrong_entry_changes_nothing_and_every_fault_is_told(
    fairlane: Call, floor: Floor, anywhere: Path
) -> None:
    fairlane("definitions", "apply", a_file(anywhere, a_command(max_running=3)))
    before = rows(floor)
    text = """\
definitions:
  - {key: sync, executor: command, command: {argv: ["true"]}, max_running: 9}
  - key: fresh
  - key: bad
    version: 1
    queue: nowhere
  - key: worse
    timeout: 5
    command:
      argv: [run, "{payload.a}", "{nobody.x}"]
"""

    answer = fairlane("definitions", "apply", written(anywhere, text))

    assert (answer.status, answer.out) == (1, "")
    lines = answer.err.splitlines()
    assert lines[0] == "fairlane: defs.yaml: 4 faults, nothing was changed"
    starts = [
        "fairlane: defs.yaml, line 5: /definitions/2/version: ",
        "fairlane: defs.yaml, line 6: /definitions/2/queue: ",
        "fairlane: defs.yaml, line 8: /definitions/3/timeout: ",
        "fairlane: defs.yaml, line 10: /definitions/3/command/argv/2: ",
    ]
    assert [line[: len(start)] for line, start in zip(lines[1:], starts, strict=True)] == starts
    assert rows(floor) == before
    assert floor.one("select count(*) from fairlane.audit") == 1


def test_a_single_fault_is_a_single_line(fairlane: Call, anywhere: Path) -> None:
    answer = fairlane("definitions", "apply", a_file(anywhere, a_command(version=1)), "--json")

    assert answer.status == 1
    assert answer.line == (
        "defs.yaml, line 7: /definitions/0/version: a version is text, not the number 1; put it in "
        'quotes: "1"; nothing was changed'
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("definitions: [\n", "defs.yaml: it is no YAML: line 2: did not find expected"),
        ("definitions: 7", 'it needs a list under "definitions"'),
        ("key: a", 'it needs a list under "definitions"'),
        ("definitions: [{key: a, key: b}]", 'the name "key" stands twice'),
        ("definitions: [\x07]", "defs.yaml"),
    ],
)
def test_what_is_no_file_of_definitions_is_refused_in_one_line(
    fairlane: Call, anywhere: Path, text: str, told: str
) -> None:
    answer = fairlane("definitions", "apply", written(anywhere, text))

    assert answer.status == 1
    assert told in answer.line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.yaml"], "nowhere.yaml: No such file or directory"),
        (["."], "name it .yaml"),
        (["folder.yaml"], "Is a directory"),
        (["defs.txt"], "name it .yaml, .yml, .toml or .json, or give --format"),
        (["-", "--format", "xml"], "'xml' is not one of"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_call_is_told_from_a_wrong_file(
    fairlane: Call, anywhere: Path, words: list[str], told: str
) -> None:
    anywhere.joinpath("folder.yaml").mkdir()
    written(anywhere, SYNC, "defs.txt")

    answer = fairlane("definitions", "apply", *words)

    assert answer.status == 2
    assert told in answer.line


def test_what_the_database_refuses_changes_nothing_either(
    fairlane: Call, floor: Floor, anywhere: Path
) -> None:
    """The queue was there when it was looked at, and somebody took it away."""
    fairlane("queues", "create", "video")
    floor.fetch(
        "create function gone() returns trigger language plpgsql as "
        "$$ begin raise exception using errcode = 'LN104', message = 'it is gone'; end $$"
    )
    floor.fetch(
        "create trigger gone before insert on fairlane.definition for each row "
        "when (new.queue = 'video') execute function gone()"
    )
    file = a_file(anywhere, a_command("a"), a_command("b", queue="video"))

    answer = fairlane("definitions", "apply", file)

    assert (answer.status, answer.line) == (1, "it is gone")
    assert rows(floor) == []


def test_a_schema_that_takes_less_is_told_with_what_becomes_of_waiting_jobs(
    fairlane: Call, floor: Floor, anywhere: Path
) -> None:
    floor.tenant("acme")
    fairlane("definitions", "apply", a_file(anywhere, a_command()))
    for _ in range(2):
        floor.enqueue("acme", "sync")
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

    answer = fairlane("definitions", "apply", a_file(anywhere, a_command(arg_schema=schema)))

    assert "note: the payload schema may refuse what it took before" in answer.out
    assert "note: 2 jobs are waiting: each runs with the payload that was accepted" in answer.out
    schema = {**schema, "required": []}
    answer = fairlane("definitions", "apply", a_file(anywhere, a_command(arg_schema=schema)))
    assert "note" not in answer.out


def test_a_terminal_is_asked_first_and_no_means_no(
    database: str, floor: Floor, anywhere: Path
) -> None:
    file = a_file(anywhere, a_command())

    assert at_a_terminal(database, anywhere, ["definitions", "apply", file], "n\n") == 1
    assert rows(floor) == []
    assert at_a_terminal(database, anywhere, ["definitions", "apply", file], "y\n") == 0
    assert len(rows(floor)) == 1
    assert at_a_terminal(database, anywhere, ["definitions", "apply", file], "") == 0


def at_a_terminal(database: str, place: Path, words: list[str], typed: str) -> int:
    """Call `fairlane` from a terminal, and type when it asks."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlane", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=place,
        env=os.environ | {"FAIRLANE_DATABASE_URL": database},
    )
    os.close(theirs)
    said, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            try:
                said += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        if typed and b"Apply this?" in said:
            os.write(ours, typed.encode())
            typed = ""
    os.close(ours)
    assert not typed, f"it did not ask: {said!r}"
    return process.wait(timeout=60)


async def ready(conn: "asyncpg.Connection[Any]", *entries: dict[str, Any]) -> list[Written]:
    return check_all(entries, queues=await queues(conn), what="defs.yaml")


async def test_a_plan_that_no_longer_holds_is_not_carried_out(
    conn: "asyncpg.Connection[Any]", floor: Floor
) -> None:
    wanted = await ready(conn, a_command(max_running=5))
    planned = await apply.plan(conn, wanted)
    floor.define("sync", executor="command", settings={"argv": ["true"]}, max_running=3)

    with pytest.raises(apply.PlanStale, match="nothing was applied"):
        await apply.apply(conn, wanted, planned=planned)

    assert rows(floor)[0][0]["max_running"] == 3
    planned = await apply.plan(conn, wanted)
    (change,) = await apply.apply(conn, wanted, planned=planned)
    assert (change.kind, change.definition.max_running) == ("changed", 5)


async def test_two_who_apply_the_same_at_once_are_told_who_did_it(
    conn: "asyncpg.Connection[Any]", database: str
) -> None:
    wanted = await ready(conn, a_command())
    other = await asyncpg.connect(database)
    try:
        async with conn.transaction():
            (first,) = await apply.apply(conn, wanted)
            waiting = asyncio.ensure_future(apply.apply(other, wanted))
            watch = "select count(*) from pg_locks where not granted and locktype = 'advisory'"
            while not await conn.fetchval(watch):
                assert not waiting.done()
        (second,) = await waiting
    finally:
        await other.close()

    assert (first.kind, second.kind) == ("created", "same")


# Changing ------------------------------------------------------------------------------------


def test_limits_are_set_while_it_runs_and_let_go_again(fairlane: Call, floor: Floor) -> None:
    floor.define("task", max_running=20, timeout_seconds=60)

    changed = fairlane(
        *("definitions", "set", "task", "--max-running", "2", "--timeout", "90"),
        *("--retry-delays", "5,50", "--queue", "bulk", "--no-dead-letter", "--json"),
    ).json

    assert (changed["max_running"], changed["timeout_seconds"]) == (2, 90)
    assert (changed["retry_delays"], changed["queue"]) == ([5, 50], "bulk")
    assert (changed["dead_letter"], changed["revision"]) == (False, 2)
    live = ["dead_letter", "max_running", "queue", "retry_delays", "timeout_seconds"]
    assert changed["set_live"] == live

    floor.define("task", max_running=30, timeout_seconds=60)  # a worker starts
    assert fairlane("definitions", "show", "task", "--json").json["max_running"] == 2
    told = fairlane("definitions", "reset", "task").out
    assert "/max_running: 2 → 30" in told
    back = fairlane("definitions", "show", "task", "--json").json
    assert (back["max_running"], back["timeout_seconds"], back["set_live"]) == (30, 60, [])


def test_what_the_code_says_today_can_be_held_for_tomorrow(fairlane: Call, floor: Floor) -> None:
    floor.define("task", max_running=20)

    told = fairlane("definitions", "set", "task", "--max-running", "20").out

    assert told.splitlines() == ["~ task 1: changed", '    /set_live: [] → ["max_running"]']
    floor.define("task", max_running=30)
    assert fairlane("definitions", "show", "task", "--json").json["max_running"] == 20


def test_none_leaves_a_field_to_the_queue(fairlane: Call, floor: Floor) -> None:
    floor.define("task", max_running=20, retry_delays=[1])

    changed = fairlane(
        *("definitions", "set", "task", "--max-running", "none", "--retry-delays", "none"), "--json"
    ).json

    assert (changed["max_running"], changed["retry_delays"]) == (None, None)


def test_a_version_is_set_apart_from_the_others(fairlane: Call, floor: Floor) -> None:
    floor.define("task", version="1")
    floor.define("task", version="2")

    fairlane("definitions", "set", "task", "--version", "1", "--max-running", "1")
    fairlane("definitions", "set", "task", "--max-running", "2")

    found = {row[0]["version"]: row[0]["max_running"] for row in rows(floor)}
    assert found == {"1": 1, "2": 2}


def test_a_paused_definition_takes_no_jobs_until_it_goes_on(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    job = floor.enqueue(acme, "a.task")

    told = fairlane("definitions", "pause", "a.task").out
    assert told.splitlines() == [
        "~ a.task 1: changed",
        "    /is_active: yes → no",
        "    note: new jobs are refused from now on; what runs goes on",
        "    note: 1 job is waiting until it is active again",
    ]
    refused = fairlane("enqueue", "a.task", "--tenant", acme)
    assert (refused.status, "not active" in refused.line) == (1, True)
    explained = fairlane("jobs", "explain", str(job), "--json").json
    assert explained["reason"] == "definition_inactive"
    assert fairlane("definitions", "list", "--json").json["items"] == []
    assert "  paused" in fairlane("definitions", "list", "--all").out

    assert fairlane("definitions", "resume", "a.task", "--json").json["is_active"] is True
    assert fairlane("enqueue", "a.task", "--tenant", acme).status == 0


def test_which_of_several_paused_versions_goes_on_must_be_said(
    fairlane: Call, floor: Floor
) -> None:
    for version in ("1", "2", "3"):
        floor.define("task", version=version, is_active=version == "3")

    answer = fairlane("definitions", "resume", "task")
    assert (answer.status, "paused in versions 1, 2" in answer.line) == (2, True)
    fairlane("definitions", "resume", "task", "--version", "1")
    assert fairlane("definitions", "resume", "task", "--json").json["version"] == "2"


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["set", "a.task"], 2, "nothing to set"),
        (["set", "a.task", "--timeout", "0"], 2, "whole number of 1 or more"),
        (["set", "a.task", "--queue", "nowhere"], 1, "/queue"),
        (["set", "nobody", "--timeout", "1"], 1, '"nobody" is unknown'),
        (["set", "a.task", "--version", "9", "--timeout", "1"], 1, "version 9 is unknown"),
        (["pause", "nobody"], 1, '"nobody" is unknown'),
        (["resume", "nobody"], 1, '"nobody" is unknown'),
        (["reset", "nobody"], 1, '"nobody" is unknown'),
        (["show", "nobody"], 1, '"nobody" is unknown'),
    ],
)
def test_what_cannot_be_changed_is_refused_in_one_line(
    fairlane: Call, acme: str, words: list[str], status: int, told: str
) -> None:
    answer = fairlane("definitions", *words)

    assert answer.status == status
    assert told in answer.line


def test_who_changed_what_can_be_looked_up(fairlane: Call, floor: Floor, acme: str) -> None:
    fairlane("definitions", "set", "a.task", "--timeout", "9", "--description", "Does it")

    items = fairlane("definitions", "history", "a.task", "--json").json["items"]

    assert [item["action"] for item in items] == ["definition.changed", "definition.created"]
    assert items[0]["detail"]["fields"]["timeout_seconds"] == {"new": 9}
    assert items[0]["actor"].startswith("cli:")
    told = fairlane("definitions", "history", "a.task").out
    assert "timeout_seconds: - → 9" in told


async def test_a_change_of_any_field_is_checked_with_the_rest(
    conn: "asyncpg.Connection[Any]", floor: Floor
) -> None:
    """What the API's PATCH stands on."""
    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    command = {"argv": ["sync", "{payload.path}"]}
    await apply.apply(conn, await ready(conn, a_command(command=command, arg_schema=schema)))
    before = rows(floor)

    async def refused(**changes: Any) -> list[str]:
        with pytest.raises(DefinitionInvalid) as caught:
            await apply.change(conn, "sync", "1", changes)
        assert rows(floor) == before
        return [fault.pointer for fault in caught.value.faults]

    assert await refused(key="other", version="2") == ["/key", "/version"]
    assert await refused(revision=7, max_running=-1) == ["/revision", "/max_running"]
    assert await refused(executor="http") == ["/http"]
    assert await refused(http={"url": "https://app.example"}) == ["/http"]
    assert await refused(command={"argv": []}) == ["/command/argv"]
    closed = {"properties": {"other": {}}, "additionalProperties": False}
    assert await refused(arg_schema=closed) == ["/command/argv/1"]

    changed = await apply.change(
        conn,
        "sync",
        None,
        {"executor": "http", "http": {"url": "https://app.example"}, "key": "sync"},
    )
    assert (changed.definition.executor, changed.definition.settings) == (
        "http",
        {"url": "https://app.example"},
    )
    changed = await apply.change(conn, "sync", None, {"executor": "python"})
    assert (changed.definition.executor, changed.definition.settings) == ("python", {})
    changed = await apply.change(conn, "sync", None, {"arg_schema": None})
    assert changed.definition.arg_schema == {"type": "object"}
