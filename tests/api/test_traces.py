"""The trace of a call, where the server makes no spans of its own: it is passed on as it came."""

from api.world import Caller, World
from fairlane.core.calls import Call

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
BODY = {"definition_key": "a.task"}


async def test_a_job_carries_the_trace_of_the_call_that_enqueued_it(
    world: World, member: Caller
) -> None:
    headers = {"traceparent": PARENT, "tracestate": "vendor=1"}
    sent = (await member.post("/jobs", BODY, headers=headers)).json()
    listed = (await member.get("/jobs")).json()["items"]
    shown = (await member.get(f"/jobs/{sent['id']}")).json()
    assert sent["trace_id"] == shown["trace_id"] == listed[0]["trace_id"] == TRACE
    kept = Call("select trace from fairlane.jobs where id = $1", (sent["id"],))
    assert await world.core.value(kept) == f"{PARENT} vendor=1"


async def test_what_is_no_trace_is_left_out(member: Caller) -> None:
    for wrong in ("00-0-0-00", "", f"00-{'0' * 32}-00f067aa0ba902b7-01"):
        sent = await member.post("/jobs", BODY, headers={"traceparent": wrong})
        assert (sent.status_code, sent.json()["trace_id"]) == (202, None)
    assert (await member.post("/jobs", BODY)).json()["trace_id"] is None
