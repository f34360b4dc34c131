"""`fairlane jobs logs`: what a job said, for people and for programs."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from cli.calling import Call, Floor


@pytest.fixture
def job(floor: Floor) -> Any:
    floor.tenant("acme")
    floor.define("reports.make")
    job = floor.one("select id from fairlane.enqueue('acme', 'reports.make')")
    tenant = floor.one("select id from fairlane.tenant")
    said = (
        (1, "2026-03-01 09:00:00Z", "info", "reading", Jsonb({"rows": 3})),
        (2, "2026-03-01 09:01:00Z", "warning", "again", None),
    )
    for line in said:
        floor.fetch(
            "insert into fairlane.log_line"
            " (job_id, tenant_id, attempt, logged_at, level, message, fields)"
            " values (%s, %s, %s, %s, %s, %s, %s)",
            *(job, tenant, *line),
        )
    floor.fetch(
        "insert into fairlane.output (job_id, attempt, stream, tenant_id, tail, bytes, written_at)"
        " values (%s, 2, 'stdout', %s, E'last words\\n', 1000, now())",
        job,
        tenant,
    )
    return job


def test_lines_and_the_ends_of_output_are_shown(fairlane: Call, job: Any) -> None:
    told = fairlane("jobs", "logs", str(job)).out
    assert "09:00:00 info    reading rows=3" in told
    assert "09:01:00 warning again" in told
    assert "--- stdout, attempt 2\n... 989 bytes before\nlast words\n" in told


def test_programs_get_the_shape_of_the_api(fairlane: Call, job: Any) -> None:
    told = fairlane("jobs", "logs", str(job), "--attempt", "2", "--json").json
    (line,) = told["items"]
    assert (line["attempt"], line["level"], line["message"]) == (2, "warning", "again")
    (output,) = told["output"]
    assert (output["stream"], output["tail"], output["bytes"]) == ("stdout", "last words\n", 1000)


def test_a_job_that_said_nothing_or_is_not_there_says_so(fairlane: Call, floor: Floor) -> None:
    floor.tenant("acme")
    floor.define("quiet")
    job = floor.one("select id from fairlane.enqueue('acme', 'quiet')")
    assert "it has said nothing" in fairlane("jobs", "logs", str(job)).err
    missing = fairlane("jobs", "logs", "00000000-0000-7000-8000-000000000000")
    assert missing.status == 1
    assert "is not there" in missing.err
