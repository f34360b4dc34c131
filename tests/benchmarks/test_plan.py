"""Each scenario can be measured, and some plan measures it."""

import importlib.util

from benchmarks.peers.plan import PLANS, SCENARIOS


def test_each_scenario_has_its_file_and_a_plan() -> None:
    for name in SCENARIOS:
        assert importlib.util.find_spec(f"benchmarks.peers.scenarios.{name.replace('-', '_')}")
        assert any(name in plan.steps for plan in PLANS.values()), name


def test_nobody_is_asked_for_what_it_cannot_do() -> None:
    for plan in PLANS.values():
        assert all(plan.steps.values())
        for name, systems in plan.steps.items():
            assert set(systems) <= set(SCENARIOS[name].systems)


def test_a_scenario_repeats_where_it_does_not_take_too_long() -> None:
    assert PLANS["bars"].repeats("noisy")
    assert not PLANS["peers"].repeats("noisy")  # each peer's B waits for all of A
    assert not any(map(PLANS["more"].repeats, PLANS["more"].steps))
