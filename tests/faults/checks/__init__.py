"""The invariants of a history: each a small function that answers what violates it."""

from collections.abc import Iterator

from faults.checks import bodies, chains, enqueues, limits, rest, times, triggers
from faults.checks.base import Check, Violation
from faults.history import History

__all__ = ["CHECKS", "ELSEWHERE", "Violation", "check"]

CHECKS: dict[str, tuple[Check, ...]] = {
    "I1 no acknowledged job is lost": (enqueues.no_acknowledged_job_is_lost,),
    "I2 nothing comes from nowhere": (enqueues.nothing_comes_from_nowhere,),
    "I3 an id is one job": (enqueues.an_id_is_one_job,),
    "I4 every move is legal": (chains.every_move_is_legal,),
    "I5 attempts count up": (chains.attempts_count_up,),
    "I6 fencing": (chains.only_who_holds_a_job_moves_it,),
    "I7 one outcome": (chains.a_job_ends_once,),
    "I8 everything ends": (times.everything_ends,),
    "I9 a job keeps its tenant": (chains.a_job_keeps_its_tenant,),
    "I10 limits are exact": (limits.limits_are_exact,),
    "I11 no ghost runs": (bodies.every_body_was_claimed,),
    "I12 overlap only after a lost lease": (bodies.bodies_overlap_only_after_a_lost_lease,),
    "I13 bounded recovery": (times.jobs_of_the_dead_are_freed,),
    "I14 schedules and events": (
        triggers.each_tick_is_made_once,
        triggers.each_event_is_delivered_once,
    ),
    "I17 one live job a dedupe key": (enqueues.a_dedupe_key_has_one_live_job,),
    "I18 what is canceled stops": (times.what_is_canceled_stops,),
    "I20 nothing is left": (rest.nothing_is_left,),
    "I21 what people change is audited": (rest.what_people_change_is_audited,),
    "I22 what was read was so": (rest.what_was_read_was_so,),
}

ELSEWHERE = {
    "I15 isolation": "the attack suite reads every surface for canaries of other tenants",
    "I16 fairness": "tests/sql/test_fairness.py and fairlane bench; under faults no share is owed",
    "I19 secrets": "the attack suite and tests/unit/test_redact.py look for them in every byte",
}


def check(history: History) -> dict[str, list[Violation]]:
    """What violates each invariant; nothing, if all is well."""
    return {name: list(_found(checks, history)) for name, checks in CHECKS.items()}


def _found(checks: tuple[Check, ...], history: History) -> Iterator[Violation]:
    for each in checks:
        yield from each(history)
