"""Real commands that print, hang, fork, die and misbehave: each ends as the docs say, and nothing
of it is left."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvloop

from fairlane.executors.command.hearing import STREAMS
from fairlane.outcome import Done, Failed, Outcome
from fairlane.redact import KNOWN, Redactor
from support.runs import Run, calling, until
from support.workers import Fleet
from support.workers import until as wait

pytestmark = pytest.mark.anyio


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


def noted(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


def alive(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] != "Z"


def failure(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome, Failed), outcome
    return outcome.error


# What it is given ----------------------------------------------------------------------------


async def test_a_command_gets_what_it_is_given_and_nothing_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FAIRLANE_DATABASE_URL", "DATABASE_URL", "PGPASSWORD", "AWS_KEY", "LD_DEBUG_X"):
        monkeypatch.setenv(name, "postgresql://worker:hush@db/fairlane")
    monkeypatch.setenv("FAIRLANE_SECRET_API_KEY", "s3cret")
    monkeypatch.setenv("REGION", "eu")
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COPY_OF_URL", "postgresql://worker:hush@db/fairlane")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}::relative/bin")
    run = Run(
        calling("environment"),
        {"who": "you", "deep": {"n": 1}},
        env={
            "GREETING": "hello {payload.who} of {tenant.slug}",
            "TOKEN": "Bearer {secret.api-key}",
            "DATABASE_URL": "{payload.who}",  # the definition's own is its own affair
            "GONE": {"optional": "{payload.nowhere}"},
        },
        inherit=["REGION", "NOWHERE", "COPY_OF_URL"],
        stdin="payload",
    )
    found = await run.result()
    env, attempt = found["env"], run.attempt

    folder = found["cwd"]
    assert env.pop("PATH") == os.environ["PATH"].removeprefix(".:").removesuffix("::relative/bin")
    assert env.pop("FAIRLANE_DEADLINE").endswith("Z")
    assert env == {
        "LANG": "C.UTF-8",
        "TZ": "Asia/Kolkata",
        "HOME": folder,
        "TMPDIR": folder,
        "REGION": "eu",
        "GREETING": "hello you of acme",
        "TOKEN": "Bearer s3cret",
        "DATABASE_URL": "you",
        "FAIRLANE_JOB_ID": str(attempt.job_id),
        "FAIRLANE_TENANT": "acme",
        "FAIRLANE_TENANT_ID": str(attempt.tenant_id),
        "FAIRLANE_ATTEMPT": "2",
        "FAIRLANE_FENCE": str(attempt.attempt),
        "FAIRLANE_CORRELATION_ID": "c-1",
        "FAIRLANE_DEFINITION": "sync",
        "FAIRLANE_VERSION": "7",
        "FAIRLANE_REPORT_FD": "3",
    }
    assert found["stdin"] == '{"who":"you","deep":{"n":1}}'
    assert found["open"][:4] == [0, 1, 2, 3]
    assert len(found["open"]) == 5  # and the one it looks with
    assert not Path(folder).exists()


def test_what_the_worker_has_open_is_not_the_commands() -> None:
    """The loop that workers run on passes every inheritable descriptor on: its log, for one."""
    theirs, kept = os.pipe()
    try:
        os.set_inheritable(theirs, True)
        high = fcntl.fcntl(theirs, fcntl.F_DUPFD, 200)
        found = uvloop.run(Run(calling("environment")).result())
        os.close(high)
    finally:
        os.close(theirs)
        os.close(kept)
    assert found["open"][:4] == [0, 1, 2, 3]
    assert len(found["open"]) == 5  # and the one it looks with


async def test_stdin_is_empty_and_the_directory_is_chosen_unless_told(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    run = Run(calling("environment"), {"x": 1}, cwd=f"{tmp_path}/{{tenant.slug}}")
    found = await run.result()
    assert found["stdin"] == ""
    assert found["cwd"] == f"{tmp_path}/acme"
    assert (tmp_path / "acme").exists()


async def test_it_starts_with_no_signal_ignored_or_blocked() -> None:
    """Python ignores SIGPIPE: `yes | head` would never end."""
    run = Run(["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"])
    assert await run.outcome() == Done(None)
    masks = [int(mask, 16) for mask in run.told.last("stdout")[0].split()[1::2]]
    # Signals 32 and 33 are the C library's own, and nobody else can set them.
    assert [mask & ~(0b11 << 31) for mask in masks] == [0, 0]


async def test_a_secret_that_is_not_there_is_a_failed_attempt_that_names_it() -> None:
    run = Run(calling("environment"), env={"TOKEN": "{secret.nowhere}"})
    error = failure(await run.outcome())
    assert error["type"] == "SecretMissing"
    assert '"nowhere"' in error["message"]


async def test_a_value_that_may_not_be_an_argument_is_never_run() -> None:
    outcome = await Run(calling("exits", "0", "{payload.x}"), {"x": "-rf"}).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.outcome == "invalid"
    assert [fault["pointer"] for fault in outcome.error["errors"]] == ["/x"]


async def test_a_private_directory_goes_whatever_was_done_to_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert await Run(calling("locks_directory", str(told))).result() is None
    assert told.read_text().startswith("/")
    assert not Path(told.read_text()).exists()


# How it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "codes", "becomes"),
    [
        (0, {}, "done"),
        (3, {}, "again"),
        (75, {"retry_codes": [75]}, "again"),
        (1, {"retry_codes": [75]}, "final"),
        (1, {"retry_codes": []}, "final"),
        (4, {"success_codes": [0, 4]}, "done"),
        (0, {"success_codes": [4]}, "again"),
        (2, {"final_codes": [2]}, "final"),
        (3, {"final_codes": [2]}, "again"),
    ],
)
async def test_an_exit_status_means_success_or_again_or_never_again(
    code: int, codes: dict[str, Any], becomes: str
) -> None:
    outcome = await Run(calling("exits", str(code), "it is what it is"), **codes).outcome()
    if becomes == "done":
        assert outcome == Done(None)
        return
    assert isinstance(outcome, Failed)
    assert outcome.final == (becomes == "final")
    assert outcome.error == {
        "type": "CommandFailed",
        "message": f"exit status {code}: it is what it is",
        "exit_code": code,
        "signal": None,
        "stderr_tail": "it is what it is\n",
    }


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_death_by_a_signal_is_told_by_its_name(number: signal.Signals) -> None:
    outcome = await Run(calling("dies", str(int(number))), retry_codes=[75]).outcome()
    error = failure(outcome)
    assert error["message"] == f"killed by {number.name}: about to go"
    assert (error["exit_code"], error["signal"]) == (None, number.name)
    assert isinstance(outcome, Failed)
    assert not outcome.final


async def test_a_program_that_is_not_there_is_named_with_the_path_it_was_looked_for_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRLANE_COMMAND_PATH", f"{tmp_path}:/nowhere")
    outcome = await Run(["zoltag"]).outcome()
    assert failure(outcome)["message"].startswith(
        f'program "zoltag" is not in this worker\'s PATH ({tmp_path}:/nowhere)'
    )
    assert isinstance(outcome, Failed)
    assert not outcome.final  # another worker may have it

    tool = tmp_path / "zoltag"
    tool.write_text("#!/nowhere/interpreter\n")
    assert "may not be executed" in failure(await Run(["zoltag"]).outcome())["message"]
    tool.chmod(0o755)
    assert "No such file" in failure(await Run(["zoltag"]).outcome())["message"]
    tool.write_text("#!/bin/sh\nexit 0\n")
    assert await Run(["zoltag"]).outcome() == Done(None)
    error = failure(await Run(["zoltag"], cwd="/nowhere").outcome())
    assert error["message"] == "/nowhere: No such file or directory"


# What it prints ------------------------------------------------------------------------------


async def test_of_megabytes_the_end_is_kept_and_all_is_counted() -> None:
    run = Run(calling("floods", "300"))
    assert await run.outcome() == Done(None)
    tail, total = run.told.last("stdout")
    assert total == 300 * 1_048_576 + 14
    assert 65_000 < len(tail.encode()) <= 65_536
    assert tail.endswith("the last line\n")
    assert tail.startswith("0123456789abcde\n")  # at the beginning of a line
    assert len(run.told.outputs) < 60  # not with every write


@pytest.mark.parametrize(
    ("data", "times", "shown"),
    [
        ("e6bca2", 40_000, "漢"),  # three bytes, cut anywhere
        ("f09f9a9a", 40_000, "🚚"),
        ("ff", 100_000, "�"),
        ("00", 100_000, "\\x00"),
        ("61ff00", 50_000, "a�\\x00"),
    ],
)
async def test_a_tail_is_text_that_can_be_stored(data: str, times: int, shown: str) -> None:
    run = Run(calling("writes_bytes", data, str(times)))
    await run.outcome()
    tail, total = run.told.last("stdout")
    assert total == times * len(data) // 2
    assert 65_000 < len(tail.encode()) <= 65_536
    assert "\x00" not in tail
    assert tail.endswith(shown)
    assert not set(tail) - set(shown)


async def test_less_is_kept_where_the_definition_says_so() -> None:
    run = Run(calling("floods", "1"), limits={"output_bytes": 14})
    await run.outcome()
    assert run.told.last("stdout") == ("the last line\n", 1_048_576 + 14)


@pytest.mark.parametrize("filler", [*range(485, 501), 4_090, 4_096, 65_530, 65_536, 73_720, 73_728])
async def test_no_half_of_a_secret_is_left_where_something_is_cut(
    monkeypatch: pytest.MonkeyPatch, filler: int
) -> None:
    secret = "hunter2-and-more"
    monkeypatch.setenv("FAIRLANE_SECRET_API_KEY", secret)
    with KNOWN.during([secret]):
        run = Run(calling("leaks", "TOKEN", str(filler), "9000"), env={"TOKEN": "{secret.api-key}"})
        error = failure(await run.outcome())
        shown = {stream: Redactor().text(run.told.last(stream)[0]) for stream in STREAMS}
    for text in (error["message"], error["stdout_tail"], error["stderr_tail"], *shown.values()):
        for size in range(4, len(secret)):
            assert secret[:size] not in text
            assert secret[-size:] not in text
    assert len(error["message"]) <= len("exit status 3: ") + 500
    assert len(error["stdout_tail"]) <= 4_096
    assert all(len(text.encode()) <= 65_536 for text in shown.values())
    assert shown["stdout"].endswith("." * min(filler, 65_000))


async def test_a_line_that_is_ignored_is_quoted_without_its_secret() -> None:
    secret = "hunter2-and-more"
    with KNOWN.during([secret]):
        run = Run(["sh", "-c", f'echo "{"x" * 62} {secret} {"y" * 100}" >&3'])
        await run.outcome()
        ((_, message, _),) = run.told.lines
        assert "hunt" not in message
        assert "not JSON: b'xxx" in message
        assert len(message) < 250


async def test_what_it_says_can_be_followed_while_it_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = Run(calling("speaks", str(gate)))
    async with run.going_on() as task:
        await until(lambda: run.told.outputs == [("stdout", "first\n", 6)], "it is heard")
        await until(lambda: len(run.told.lines) == 2, "its report is heard")
        assert run.told.phases == ["waiting"]
        assert run.told.steps == [{"done": 1, "total": 2, "message": "half", "done_by": "me"}]
        assert run.told.lines == [
            ("info", "phase: waiting", {"at": "the gate"}),
            ("warning", "a word", {}),
        ]
        gate.touch()
        assert await task == Done(None)
    assert run.told.last("stdout") == ("first\nsecond\n", 13)


async def test_rubbish_in_the_report_is_ignored_and_counted() -> None:
    run = Run(calling("talks_rubbish"))
    assert await run.result() == {"last": True}
    assert run.told.phases == ["named"]
    assert run.told.steps == [{}]
    warnings = [message for level, message, _ in run.told.lines if level == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "3 lines of the command's report were ignored; the first one that"
    )


async def test_of_a_report_that_comes_too_fast_the_last_word_arrives() -> None:
    run = Run(calling("chatters", "20000"))
    await run.outcome()
    assert len(run.told.steps) < 1_000
    assert run.told.steps[-1] == {"done": 20_000}


@pytest.mark.parametrize("size", [1_048_577, 5_000_000])
async def test_a_result_that_is_too_large_is_a_failed_attempt(size: int) -> None:
    error = failure(await Run(calling("huge_result", str(size))).outcome())
    assert error["type"] == "ResultInvalid"
    assert "1048576" in error["message"]


async def test_a_command_that_closes_its_streams_goes_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = Run(calling("closes_everything", str(gate)))
    async with run.going_on() as task:
        done, _ = await asyncio.wait([task], timeout=0.5)
        assert not done
        gate.touch()
        assert await task == Done(None)


# What it may use -----------------------------------------------------------------------------


async def over(limit: str, *argv: Any, **limits: Any) -> dict[str, Any]:
    error = failure(await Run(calling(*argv), limits=limits).outcome())
    assert error["limit"] == limit, error
    return error


async def test_cpu_is_counted_over_all_its_processes() -> None:
    error = await over("cpu_seconds", "burns", "3", cpu_seconds=1)
    assert error["message"] == "over its limit of 1 seconds of CPU"


async def test_memory_that_the_kernel_refuses_is_the_commands_own_failure() -> None:
    run = Run(calling("eats", "500", "private"), limits={"memory_mb": 200})
    assert "MemoryError" in failure(await run.outcome())["message"]


@pytest.mark.parametrize("way", ["shared", "many"])
async def test_memory_is_counted_over_all_its_processes(way: str) -> None:
    error = await over("memory_mb", "eats", "150", way, memory_mb=100)
    assert error["message"] == "over its limit of 100 MB of memory"


async def test_too_many_processes_are_killed_and_none_is_left(pids: Path) -> None:
    error = await over("processes", "forks", "200", str(pids), processes=20)
    assert error["message"] == "over its limit of 20 processes"
    assert len(noted(pids)) > 15
    assert not [pid for pid in noted(pids) if alive(pid)]


async def test_a_fork_bomb_is_put_out(pids: Path) -> None:
    await over("processes", "bombs", str(pids), processes=50)
    assert not [pid for pid in noted(pids) if alive(pid)]


async def test_a_file_that_grows_too_large_ends_the_command() -> None:
    error = await over("file_size_mb", "writes_file", "5", file_size_mb=2)
    assert error["signal"] == "SIGXFSZ"


async def test_only_so_many_files_are_opened() -> None:
    run = Run(calling("opens_files", "100"), limits={"open_files": 50})
    assert "Too many open files" in failure(await run.outcome())["message"]


async def test_output_over_its_limit_ends_the_command() -> None:
    error = await over("max_output_bytes", "floods", "10000", max_output_bytes=2_000_000)
    assert error["message"] == "over its limit of 2000000 bytes of output"


# How it is stopped ---------------------------------------------------------------------------


async def stopped(run: Run, pids: Path, count: int = 1) -> Outcome | None:
    """Cancel it once it is up; its outcome, or None when it counts as stopped."""
    async with run.going_on() as task:
        await until(lambda: len(noted(pids)) >= count, "it is up")
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=20)
        assert done, "it goes on long after its grace"
        assert not [pid for pid in noted(pids) if alive(pid)]
        assert run.attempt.pids == set()
        return None if task.cancelled() else task.result()


async def test_it_is_asked_first_and_what_it_says_is_heard(pids: Path) -> None:
    run = Run(calling("stops_when_asked", str(pids), "0"))
    assert await stopped(run, pids) is None  # 0 is how many programs leave when they are asked
    assert run.told.last("stdout") == ("leaving\n", 8)


async def test_a_result_within_the_grace_counts(pids: Path) -> None:
    run = Run(calling("stops_when_asked", str(pids), "0", "all of it"))
    assert await stopped(run, pids) == Done('"all of it"')
    pids.unlink()
    run = Run(calling("stops_when_asked", str(pids), "1", "half of it"))
    assert await stopped(run, pids) is None


async def test_one_that_ignores_it_is_killed_after_the_grace_with_its_daemons(pids: Path) -> None:
    run = Run(calling("stubborn", str(pids)), timeout=1)
    assert run.attempt.grace == 0.5
    assert await stopped(run, pids, 2) is None


@pytest.mark.parametrize("count", [1, 8])
async def test_a_chain_of_processes_that_fork_and_exit_does_not_outlive_it(
    tmp_path: Path, count: int
) -> None:
    """Each was gone before it could be listed; the guard found none and left the chain behind."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    holders = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run = Run(calling("chains", str(count), str(fifo)), timeout=1)
        async with run.going_on() as task:
            await until(lambda: run.told.phases, "it is up")
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=20)
            assert done
            assert os.read(holders, 1) == b"", "nobody holds it any more"
    finally:
        os.close(holders)


def test_what_cannot_be_killed_is_left_in_the_end_and_not_in_silence() -> None:
    source = (
        "import os, subprocess; from fairlane.executors import killing;"
        "sleeper = subprocess.Popen(['sleep', '60']);"
        "killing.PATIENCE, kill = 0.2, killing._kill;"
        "killing._kill = lambda pid, groups: True;"
        "assert killing.kill_descendants() is False;"
        "killing._kill = kill;"
        "assert killing.kill_descendants() is True"
    )
    said = subprocess.run(
        [sys.executable, "-c", source], stderr=subprocess.PIPE, text=True, check=True
    ).stderr
    assert said.startswith("fairlane: ERROR: 1 processes of a job are not dead 0.2 s after")


async def test_a_second_request_kills_at_once(pids: Path) -> None:
    run = Run(calling("stubborn", str(pids)), timeout=600)
    async with run.going_on() as task:
        await until(lambda: len(noted(pids)) == 2, "it is up")
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=4)  # less than the grace
        assert done
        assert not [pid for pid in noted(pids) if alive(pid)]


async def test_a_daemon_does_not_outlive_its_command(pids: Path) -> None:
    assert await Run(calling("leaves_daemon", str(pids))).result() == "gone"
    assert len(noted(pids)) == 1
    assert not alive(noted(pids)[0])


async def test_the_fence_kills_at_once(pids: Path) -> None:
    """As the lease's thread does it when the lease is lost."""
    run = Run(calling("stubborn", str(pids)), timeout=600)
    async with run.going_on() as task:
        await until(lambda: len(noted(pids)) == 2, "it is up")
        (guard,) = run.attempt.pids
        os.kill(guard, signal.SIGQUIT)
        await asyncio.wait([task], timeout=4)
        assert not [pid for pid in noted(pids) if alive(pid)]
        assert failure(task.result())["signal"] == "SIGKILL"


async def test_a_worker_that_dies_takes_the_command_and_its_directory_with_it(
    pids: Path, tmp_path: Path
) -> None:
    source = (
        "import asyncio, sys; from support.runs import Run, calling; "
        "asyncio.run(Run(calling('stubborn', sys.argv[1])).outcome())"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", source, str(pids)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TMPDIR": str(tmp_path)},
    )
    try:
        await until(lambda: len(noted(pids)) == 2, "it is up")
        assert len(list(tmp_path.glob("fairlane-*"))) == 1
    finally:
        worker.kill()
        worker.wait()
    await until(lambda: not [pid for pid in noted(pids) if alive(pid)], "all are gone")
    await until(lambda: not list(tmp_path.glob("fairlane-*")), "its directory is gone")


async def test_a_command_that_kills_its_guard_fails_and_dies_of_it(
    pids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # nobody is left to tidy up
    error = failure(await Run(calling("kills_guard", str(pids))).outcome())
    assert error["type"] == "GuardDied"
    await until(lambda: not alive(noted(pids)[0]), "it is gone")


# With a worker that has no app ----------------------------------------------------------------


def define(fleet: Fleet, key: str, argv: list[Any], **fields: Any) -> None:
    settings = {"argv": argv, **fields.pop("settings", {})}
    definition = {"key": key, "executor": "command", "settings": settings, **fields}
    fleet.db.execute("select fairlane.define(%s)", [json.dumps([definition])])


def test_a_bare_worker_runs_a_command_and_all_of_it_is_kept(fleet: Fleet, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    schema = {
        "type": "object",
        "properties": {"gate": {"type": "string", "default": str(gate)}},
        "additionalProperties": False,
    }
    define(fleet, "speaks", calling("speaks", "{payload.gate}"), arg_schema=schema)
    fleet.worker(app=None)
    job = fleet.enqueue("speaks")  # by SQL: the worker completes it with its defaults

    def output() -> Any:
        return fleet.db.execute(
            "select tail, bytes from fairlane.output where job_id = %s and stream = 'stdout'", [job]
        ).fetchone()

    wait(lambda: output() == ("first\n", 6), "its output can be read while it runs")
    wait(lambda: fleet.ask("select phase from fairlane.jobs where id = %s", job), "and its phase")
    assert fleet.status(job) == "running"
    gate.touch()
    fleet.until_status(job, "succeeded")
    assert output() == ("first\nsecond\n", 13)
    assert fleet.ask(
        "select count(*) from fairlane.log_line where job_id = %s and message = 'a word'", job
    )


def test_a_command_that_fails_for_good_ends_its_job_with_what_it_said(fleet: Fleet) -> None:
    define(fleet, "fails", calling("exits", "9", "no such folder"), settings={"retry_codes": [75]})
    fleet.worker(app=None)
    job = fleet.enqueue("fails")
    fleet.until_status(job, "failed")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["message"] == "exit status 9: no such folder"
    assert error["exit_code"] == 9


def test_a_value_that_may_not_be_an_argument_parks_its_job_unrun(fleet: Fleet) -> None:
    define(fleet, "shows", calling("argv", "{payload.x}"))
    fleet.worker(app=None)
    job = fleet.enqueue("shows", '{"x": "--rm"}')
    fleet.until_status(job, "dead_letter")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert [fault["pointer"] for fault in error["errors"]] == ["/x"]
    job = fleet.enqueue("shows", '{"x": "$(id) && `id`"}')
    fleet.until_status(job, "succeeded")
    result = fleet.ask("select result from fairlane.history where id = %s", job)
    assert result == ["$(id) && `id`"]


def test_a_secret_that_a_command_gives_away_is_kept_nowhere(fleet: Fleet) -> None:
    env = {"TOKEN": "{secret.api-key}"}
    define(fleet, "tells", calling("tells", "TOKEN", "1"), max_attempts=1, settings={"env": env})
    worker = fleet.worker(app=None, FAIRLANE_SECRET_API_KEY="hunter2-and-more")
    job = fleet.enqueue("tells")
    fleet.until_status(job, "dead_letter")
    error = fleet.ask("select last_error from fairlane.jobs where id = %s", job)
    assert error["message"] == "exit status 1: [redacted]"
    for table in ("output", "log_line", "attempt", "dead_letter"):
        rows = fleet.db.execute(f"select to_jsonb(t)::text from fairlane.{table} t").fetchall()
        assert rows
        assert not [row for row in rows if "hunter2" in row[0]]
    assert not worker.said("hunter2")


def test_a_command_that_hangs_is_killed_when_its_time_is_up(fleet: Fleet, pids: Path) -> None:
    define(fleet, "hangs", calling("stubborn", str(pids)), timeout_seconds=1, max_attempts=1)
    fleet.worker(app=None)
    job = fleet.enqueue("hangs")
    fleet.until_status(job, "dead_letter")
    assert not [pid for pid in noted(pids) if alive(pid)]
    assert fleet.ask("select outcome from fairlane.attempt where job_id = %s", job) == "timeout"


def test_a_canceled_command_is_stopped_with_its_daemons(fleet: Fleet, pids: Path) -> None:
    define(fleet, "hangs", calling("stubborn", str(pids)), timeout_seconds=2)
    fleet.worker(app=None)
    job = fleet.enqueue("hangs")
    wait(lambda: len(noted(pids)) == 2, "it is up")
    fleet.db.execute("select fairlane.cancel(%s)", [job])
    fleet.until_status(job, "canceled")
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_a_killed_worker_takes_its_commands_with_it(fleet: Fleet, pids: Path) -> None:
    define(fleet, "hangs", calling("stubborn", str(pids)))
    worker = fleet.worker(app=None)
    fleet.enqueue("hangs")
    wait(lambda: len(noted(pids)) == 2, "it is up")
    worker.kill()
    wait(lambda: not [pid for pid in noted(pids) if alive(pid)], "all are gone")


def test_a_worker_that_is_stopped_hands_its_command_back(fleet: Fleet, pids: Path) -> None:
    define(fleet, "hangs", calling("hangs", str(pids)))
    worker = fleet.worker(app=None, FAIRLANE_GRACE_SECONDS="1")
    job = fleet.enqueue("hangs")
    wait(lambda: noted(pids), "it is up")
    assert worker.stop() == 0
    assert not [pid for pid in noted(pids) if alive(pid)]
    assert fleet.status(job) == "queued"
    assert fleet.ask("select attempt - forgiven from fairlane.job where id = %s", job) == 0
