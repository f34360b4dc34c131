"""Which connections a worker uses for what."""

from support.workers import Fleet, until

CLAIMERS = """
select array_agg(pid)
  from pg_stat_activity
 where query like '%%fairlane.claim_queues%%'
   and datname = current_database()
   and pid <> pg_backend_pid()
"""


def test_every_claim_goes_through_one_connection(fleet: Fleet) -> None:
    """A new one has all functions to compile and all plans to make: the job that it is for waited
    ten times as long as others."""
    fleet.worker("default=4")
    seen: set[int] = set()

    def done() -> bool:
        seen.update(fleet.ask(CLAIMERS) or [])
        return int(fleet.ask("select count(*) from fairlane.history")) == 60

    for _ in range(60):
        fleet.enqueue("echo")
    until(done, "all are done")

    assert len(seen) == 1
