"""Jain's index tells an even share from an uneven one."""

import pytest

from fairlane.metrics.fairness import MOST, Fairness, jain


@pytest.mark.parametrize(
    ("had", "index"),
    [([], 1), ([0, 0], 1), ([3, 3, 3], 1), ([1, 0, 0, 0], 0.25), ([2, 1], 0.9)],
    ids=str,
)
def test_the_index_of_amounts(had: list[float], index: float) -> None:
    assert jain(had) == pytest.approx(index)


def test_only_who_competes_all_the_while_is_compared() -> None:
    fairness = Fairness()
    assert fairness.index(0, {"q": {"a": 10, "b": 500, "gone": 1}}) == {"q": 1}
    after = fairness.index(60, {"q": {"a": 20, "b": 510, "new": 9000}})
    assert after == {"q": 1}
    # `b` has had nothing since the first look, `a` all.
    after = fairness.index(120, {"q": {"a": 90, "b": 500}})
    assert after == {"q": 0.5}


def test_what_is_long_ago_is_forgotten() -> None:
    fairness = Fairness()
    fairness.index(0, {"q": {"a": 0, "b": 0}})
    fairness.index(100, {"q": {"a": 100, "b": 0}})
    later = fairness.index(MOST + 1, {"q": {"a": 110, "b": 10}})
    assert later == {"q": 1}
