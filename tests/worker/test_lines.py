"""What tasks log in their own ways stands in the log of the job that it is about."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from fairlane.running import RUNNING
from fairlane.saying import lines
from fairlane.saying.records import line_of
from support.workers import Fleet

APP = "worker.item_tasks:app"


def lines_of(fleet: Fleet, job: Any) -> list[tuple[str, str, Any]]:
    return fleet.db.execute(
        "select level, message, fields from fairlane.log_line where job_id = %s order by seq", [job]
    ).fetchall()


def test_each_line_stands_with_the_job_that_it_is_about(fleet: Fleet) -> None:
    """However many run at once, in the loop and in threads."""
    fleet.worker("default=20", app=APP)
    fleet.db.execute("select fairlane.set_plan('pro', '{\"max_running\": 50}')")
    jobs = {name: fleet.enqueue("logs", json.dumps({"name": name})) for name in "abcdefghij"}
    in_threads = {name: fleet.enqueue("logs_sync", f'{{"name": "{name}"}}') for name in "klmnop"}
    for name, job in jobs.items():
        fleet.until_status(job, "succeeded")
        begins, thread, event, fails = lines_of(fleet, job)
        assert begins == ("info", f"{name} begins", {"logger": "the.users.own", "row": 7})
        assert thread == ("warning", f"{name} in a thread", {"logger": "the.users.own"})
        assert event == ("info", "an event", {"name": name})
        assert fails[:2] == ("error", f"{name} fails")
        assert fails[2]["exception"].endswith("ValueError: no luck\n")
    for name, job in in_threads.items():
        fleet.until_status(job, "succeeded")
        assert [line[1] for line in lines_of(fleet, job)] == [f"{name} begins"]


def test_a_process_of_its_own_is_heard_in_every_thread(fleet: Fleet) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("logs_apart", '{"name": "a"}')
    fleet.until_status(job, "succeeded")
    assert lines_of(fleet, job) == [
        ("info", "a begins", {"logger": "the.users.own", "row": 7}),
        ("warning", "an event", {"name": "a"}),
        ("error", "a in a thread", {"logger": "the.users.own"}),
    ]


def test_lines_that_cannot_be_kept_harm_nobody_and_no_secret_is(fleet: Fleet) -> None:
    worker = fleet.worker(app=APP)
    job = fleet.enqueue("logs_badly", '{"key": "canary-77aa41"}')
    fleet.until_status(job, "succeeded")
    messages = [line[1] for line in lines_of(fleet, job)]
    assert messages == [
        "somebody asks who I am",  # who prints the line; not who keeps it for the job
        "it is a chatterbox",
        "a line of the.users.own cannot be kept: RuntimeError",
        "a line of the.users.own cannot be kept: TypeError",
        "with an extra",
        "the key is [redacted]",
        "x" * 8_192,
    ]
    assert "canary-77aa41" not in str(lines_of(fleet, job))
    assert not worker.said("starts over")


def test_of_a_job_that_never_stops_talking_the_last_lines_are_kept_and_the_rest_is_counted(
    fleet: Fleet,
) -> None:
    fleet.worker(app=APP)
    job = fleet.enqueue("talks", '{"count": 1500}')
    fleet.until_status(job, "succeeded")
    fleet.db.execute("select fairlane.cut_lines(array[%s], fairlane.clock(), 1000)", [job])
    fleet.db.execute("select fairlane.cut_lines(array[%s], fairlane.clock(), 900)", [job])
    fleet.db.execute("select fairlane.cut_lines(array[%s], fairlane.clock(), 900)", [job])
    kept = lines_of(fleet, job)
    assert [line[1] for line in kept] == [f"line {n}" for n in range(600, 1500)]
    assert fleet.ask("select lines from fairlane.log_cut where job_id = %s", job) == 600


class Heard:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def hear(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.lines.append((level, message, fields))


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    token = RUNNING.set(heard)  # type: ignore[arg-type]
    yield heard
    RUNNING.reset(token)
    structlog.reset_defaults()


def a_record(message: Any, **extra: Any) -> logging.LogRecord:
    record = logging.LogRecord("a", logging.INFO, "", 0, message, (), None)
    vars(record).update(extra)
    return record


@pytest.mark.parametrize(
    "last",
    [
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        structlog.stdlib.render_to_log_kwargs,
        structlog.processors.JSONRenderer(),
    ],
    ids=["formatter", "kwargs", "json"],
)
def test_structlog_through_logging_keeps_its_fields(heard: Heard, last: Any) -> None:
    lines.listen()
    structlog.configure(
        processors=[structlog.stdlib.add_log_level, last],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    lines.listen()
    structlog.get_logger("shop").warning("sold out", article=7)
    ((level, message, fields),) = heard.lines
    assert (level, message) == ("warning", "sold out")
    assert fields == {"logger": "shop", "article": 7} | (
        {"level": "warning"} if last is structlog.stdlib.render_to_log_kwargs else {}
    )


def test_structlog_that_prints_is_heard_once_however_often_we_listen(heard: Heard) -> None:
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.KeyValueRenderer()],
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logger = structlog.get_logger()
    assert logger.info("before") == "event='before' level='info'"
    lines.listen()
    lines.listen()
    assert logger.error("sold out", article=7) == "article=7 event='sold out' level='error'"
    assert heard.lines == [("error", "sold out", {"article": 7})]


def test_what_is_printed_in_colours_is_kept_without() -> None:
    assert line_of(a_record("\x1b[1mbold\x1b[0m"))[0] == "bold"
