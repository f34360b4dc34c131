"""Stories in which one thing is wrong. A check that has never failed proves nothing."""

from faults.wrong import jobs, rest, running, triggers
from faults.wrong.base import WRONG, Wrong

__all__ = ["WRONG", "Wrong", "jobs", "rest", "running", "triggers"]
