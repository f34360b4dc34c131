"""What a check found, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    name: str
    verdict: Verdict
    found: str
    next_step: str | None = None


def ok(name: str, found: str) -> Check:
    return Check(name, Verdict.OK, found)


def warn(name: str, found: str, next_step: str) -> Check:
    return Check(name, Verdict.WARN, found, next_step)


def fail(name: str, found: str, next_step: str) -> Check:
    return Check(name, Verdict.FAIL, found, next_step)
