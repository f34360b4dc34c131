"""A server that forgets what it has acknowledged is found out before it does."""

import json
import os
import subprocess
import sys

import pytest

from faults.scene import scene
from support.postgres import Server
from support.workers import until

pytestmark = [pytest.mark.fault, pytest.mark.scene, pytest.mark.timeout(180)]

WEAK = {
    "fsync": ("off", "fail"),
    "full_page_writes": ("off", "fail"),
    "synchronous_commit": ("off", "warn"),
}


def examined(server: Server) -> tuple[int, str, str]:
    """Exit status of `fairlane doctor`, and its verdict on the settings with what it found."""
    done = subprocess.run(
        [sys.executable, "-m", "fairlane", "doctor", "--json"],
        env={**os.environ, "FAIRLANE_DATABASE_URL": server.url()},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    found = checks["server settings"]
    return done.returncode, found["verdict"], found["found"]


def test_doctor_names_each_setting_that_weakens_the_promise(server: Server) -> None:
    with scene("weak_settings") as played, server.connect() as db:
        status, verdict, _ = examined(server)
        played.check("all is well before", [verdict] if (status, verdict) != (0, "ok") else [])
        for name, (value, expected) in WEAK.items():
            db.execute(f"alter system set {name} = '{value}'")
            db.execute("select pg_reload_conf()")
            until(
                lambda name=name, value=value: server.shows(name) == value,  # type: ignore[misc]
                f"{name} is {value}",
            )
            played.injected += 1
            status, verdict, found = examined(server)
            played.operations += 1
            played.check(f"{name} is named", [found] if name not in found else [])
            played.check(f"{name} is judged", [verdict] if verdict != expected else [])
            played.check("and by its status", (status == 0) != (expected == "warn"))
            db.execute(f"alter system reset {name}")
            db.execute("select pg_reload_conf()")
            until(lambda name=name: server.shows(name) == "on", f"{name} is on")  # type: ignore[misc]


def test_a_commit_that_waits_for_no_standby_is_named_where_one_is_asked_for(
    server: Server,
) -> None:
    """synchronous_commit = local: the standby is there, and nobody waits for it."""
    with scene("weak_sync_commit") as played, server.connect() as db:
        db.execute("alter system set synchronous_commit = 'local'")
        db.execute("alter system set synchronous_standby_names = 'standby'")
        db.execute("select pg_reload_conf()")
        until(lambda: server.shows("synchronous_commit") == "local", "it is weak")
        played.injected += 1
        _, verdict, found = examined(server)
        played.operations += 1
        played.check("it is named", [found] if "synchronous_commit is local" not in found else [])
        played.check("it is a warning", [verdict] if verdict != "warn" else [])
