"""The systems, and how many jobs each drains: a rate needs some seconds, and no more."""

from dataclasses import dataclass

OURS = "fairlane"
FLOOR = "floor"


@dataclass(frozen=True)
class System:
    on: str  # "postgresql" or "redis"
    jobs: int
    peer: bool = True
    package: str = ""


SYSTEMS = {
    "fairlane": System("postgresql", 200_000, peer=False),
    "floor": System("postgresql", 400_000, peer=False),
    "floor-bare": System("postgresql", 400_000, peer=False),
    "pgqueuer": System("postgresql", 120_000, package="pgqueuer"),
    "awa": System("postgresql", 12_000, package="awa-pg"),
    "chancy": System("postgresql", 24_000, package="chancy"),
    "procrastinate": System("postgresql", 2_000, package="procrastinate"),
    "saq": System("postgresql", 2_000, package="saq"),
    "dbos": System("postgresql", 1_200, package="dbos"),
    "taskiq": System("redis", 8_000, package="taskiq"),
    "dramatiq": System("redis", 8_000, package="dramatiq"),
    "arq": System("redis", 3_000, package="arq"),
    "celery": System("redis", 3_000, package="celery"),
    "rq": System("redis", 2_000, package="rq"),
}
PEERS = [name for name, system in SYSTEMS.items() if system.peer]
ON_POSTGRESQL = [name for name in PEERS if SYSTEMS[name].on == "postgresql"]
