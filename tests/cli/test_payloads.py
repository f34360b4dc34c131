"""`fairlane enqueue` holds a payload to its definition, and tells a line for each fault."""

from cli.calling import Call, Floor
from fairlane.schemas import inputs_hash

SCHEMA = {
    "type": "object",
    "required": ["report"],
    "properties": {"report": {"type": "integer"}, "format": {"enum": ["pdf"], "default": "pdf"}},
    "additionalProperties": False,
}


def test_a_payload_is_completed_and_hashed(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("reports", arg_schema=SCHEMA)

    job = fairlane(
        "enqueue", "reports", "--tenant", acme, "--payload", '{"report": 7}', "--json"
    ).json

    assert job["payload"] == {"report": 7, "format": "pdf"}
    assert job["inputs_hash"] == inputs_hash("reports", "1", job["payload"])
    assert (job["deduplicated"], job["reused"]) == (False, False)


def test_all_faults_are_told_in_one_line_each_with_its_pointer(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.define("reports", arg_schema=SCHEMA)

    payload = '{"format": "secret", "a\\nb": 1}'
    answer = fairlane("enqueue", "reports", "--tenant", acme, "--payload", payload)

    assert (answer.status, answer.out) == (1, "")
    first, faults = answer.line.split("fit: ")
    assert first == 'the payload of "reports" does not '
    assert sorted(faults.split("; ")) == [
        "/a b: no such property",
        '/format: must be one of "pdf"',
        "/report: is missing",
    ]
    assert floor.one("select count(*) from fairlane.jobs") == 0


def test_one_fault_is_told_in_one_line(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("reports", arg_schema=SCHEMA)

    answer = fairlane("enqueue", "reports", "--tenant", acme, "--payload", '{"report": "x"}')

    assert answer.status == 1
    assert answer.line == 'the payload of "reports" does not fit: /report: must be a whole number'


def test_a_version_is_held_to_its_own_schema(fairlane: Call, floor: Floor, acme: str) -> None:
    floor.define("reports", arg_schema=SCHEMA)
    floor.define("reports", version="2", arg_schema={"type": "object"})
    words = ("enqueue", "reports", "--tenant", acme)

    assert fairlane(*words, "--json").json["version"] == "2"
    assert fairlane(*words, "--version", "1").status == 1
    assert fairlane(*words, "--version", "3").line.startswith(
        'definition "reports" version 3 is un'
    )


def test_what_succeeded_before_will_do_if_asked(fairlane: Call, floor: Floor, acme: str) -> None:
    words = ("enqueue", "a.task", "--tenant", acme, "--payload", '{"n": 1}', "--json")
    first = fairlane(*words).json
    worker = floor.worker()
    ((job, attempt),) = floor.claim(worker)
    floor.finish(worker, job, attempt)

    again, anew = fairlane(*words, "--reuse").json, fairlane(*words, "--no-reuse").json

    assert (again["id"], again["reused"], again["status"]) == (first["id"], True, "succeeded")
    assert (anew["id"] == first["id"], anew["reused"]) == (False, False)
