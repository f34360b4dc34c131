"""A secret that a command gives away, in every form and cut in two, is in no byte that is kept or
served (I19, S18)."""

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attacks.tally import tallied
from fairlane.redact.known import TELLING, Known
from observe.serving import server
from support.runs import calling
from support.workers import Fleet, fleet_of, until

SECRET = 'tr0ub4dor&3/"correct"+horse'
FORMS = {
    "raw": SECRET,
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "url": urllib.parse.quote(SECRET, safe=""),
    "hex": SECRET.encode().hex(),
    "json": json.dumps(SECRET)[1:-1],
}


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(database, tmp_path) as found:
        yield found


def stored(fleet: Fleet) -> dict[str, str]:
    """Every row of every table, but for what a worker needs: how the definition is run."""
    tables = fleet.db.execute(
        "select relname from pg_class where relnamespace = 'fairlane'::regnamespace "
        "and relkind in ('r', 'p') and not relispartition"
    ).fetchall()
    found = {}
    for (name,) in tables:
        rows = fleet.db.execute(f"select to_jsonb(t)::text from fairlane.{name} t").fetchall()
        found[name] = "\n".join(row[0] for row in rows)
    return found


def told_in(text: str, least: int = 8) -> list[str]:
    """The forms of which some part stands in a text; JSON quotes once more."""
    plain = text.replace('\\\\"', '\\"').replace('\\"', '"')
    return [
        name
        for name, form in FORMS.items()
        for at in range(len(form) - least + 1)
        if form[at : at + least] in text or form[at : at + least] in plain
    ]


def test_the_search_itself_finds_each_form() -> None:
    for name, form in FORMS.items():
        assert name in told_in(json.dumps({"x": f"a {form} b"}))
        assert name in told_in(f"... {form[:9]}")
    assert told_in("nothing of it here, and no word that looks like it") == []


def test_a_secret_cut_in_two_by_a_pause_is_kept_and_served_nowhere(
    fleet: Fleet, tmp_path: Path
) -> None:
    """While it runs, the end of its output stood there with the first half of the secret: nobody
    can know half of it again. What may be a beginning now waits for its rest."""
    gate = tmp_path / "gate"
    for name, form in FORMS.items():
        argv = calling("splits", "TOKEN", name, str(len(form) // 2), str(gate))
        env = {"TOKEN": "{secret.word}"}
        one = {"key": name, "executor": "command", "settings": {"argv": argv, "env": env}}
        fleet.db.execute("select fairlane.define(%s)", [json.dumps([one])])
    worker = fleet.worker("default=8", app=None, FAIRLANE_SECRET_WORD=SECRET)
    jobs = {name: fleet.enqueue(name) for name in FORMS}
    begun = "select count(*) from fairlane.output where tail like 'it is%%'"
    until(lambda: fleet.ask(begun) == 2 * len(FORMS), "each has written its first half")
    with tallied("secrets in what is kept and served") as tally:
        check_all(tally, "while they run", stored(fleet))
        with server(fleet.url, tmp_path) as (process, address, operator):
            check_all(tally, "served while they run", served(address, operator, jobs))
            gate.touch()
            for job in jobs.values():
                fleet.until_status(job, "succeeded_with_errors", "succeeded", "dead_letter")
            check_all(tally, "when they have ended", stored(fleet))
            check_all(tally, "served in the end", served(address, operator, jobs))
            logs = {"worker": worker.log.read_text(), "server": process.log.read_text()}
            check_all(tally, "logged", logs)
        tails = fleet.db.execute("select tail from fairlane.output").fetchall()
        shown = sum("it is [redacted] !" in row[0] for row in tails)
        tally.hold(shown == 2 * len(FORMS), f"all is told but the secret: {tails}")
        tally.injected = 2 * len(FORMS)


def check_all(tally: Any, when: str, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        tally.operations += 1
        tally.hold(not told_in(text), f"{when}: {name} has {told_in(text)}")


def served(address: str, operator: str, jobs: dict[str, Any]) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {operator}", "X-Fairlane-Tenant": "acme"}
    found = {}
    with httpx2.Client(base_url=f"{address}/api/v1", headers=headers, timeout=30) as http:
        for name, job in jobs.items():
            for part in ("", "/attempts", "/logs", "/items", "/explain"):
                answer = http.get(f"/jobs/{job}{part}")
                assert answer.status_code == 200, answer.text
                found[f"{name}{part}"] = answer.text
    return found


@given(
    st.text(st.characters(codec="utf-8"), min_size=8, max_size=40),
    st.text(max_size=30),
    st.integers(0, 40),
)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_beginning_of_a_secret_is_left_at_the_end_of_what_goes_on(
    secret: str, before: str, cut: int
) -> None:
    known = Known([secret])
    secret = secret.strip()
    text = before + secret[:cut]
    shown = known.hide(text)
    shown = shown[: len(shown) - known.begun(shown)]
    for size in range(max(TELLING, 1), min(cut, len(secret) - 1) + 1):
        if known:
            assert not shown.endswith(secret[:size]) or shown == before, (text, shown)
