"""A canary in every field of one tenant; every surface read as another (I15, S1, S6, S7, S8)."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from api.calls import PREFIX, operations
from attacks.canaries import Canaries, calls_of, good, plant, signed_in
from attacks.tally import Tally, tallied
from fairlane.access.roles import Role
from fairlane.web.pages import PAGES
from metrics.scraping import Scrape
from observe.serving import server
from support.cluster import Cluster
from support.workers import Process, until

GETS = [each for each in operations() if each.method == "GET"]
PAGES_READ = [page for page in PAGES if page.method == "GET" and page.needs]


@dataclass
class Scene:
    """A real server with two tenants, after acme has filled all it can."""

    address: str
    process: Process
    database: str
    tokens: dict[str, str]
    canary: Canaries
    ids: dict[str, str]

    def token(self, name: str) -> str:
        return self.tokens[name]


@pytest.fixture(scope="module")
def scene(cluster: Cluster, template: str, tmp_path_factory: Any) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("canaries")
    told = {"FAIRLANE_API_RATE": "0", "FAIRLANE_LOG_LEVEL": "debug"}
    with (
        cluster.fresh(template) as database,
        server(database, folder, **told) as (process, address, operator),
    ):
        tokens = {"operator": operator}
        with calls_of(address, operator) as http:
            for slug in ("acme", "other"):
                good(http.post("/admin/tenants", json={"slug": slug, "plan": "pro"}))
            good(http.post("/admin/jobs/definitions", json={"key": "a.task"}))
        for slug in ("acme", "other"):
            for role in ("viewer", "member", "admin"):
                tokens[f"{slug} {role}"] = made(address, operator, slug, role)
        tokens["worker"] = worker_token(database)
        canary = Canaries()
        ids = plant(address, tokens["acme admin"], tokens["worker"], canary)
        yield Scene(address, process, database, tokens, canary, ids)


def made(address: str, operator: str, tenant: str, role: str) -> str:
    with calls_of(address, operator, tenant) as http:
        return str(good(http.post("/tokens", json={"role": role}))["token"])


def worker_token(database: str) -> str:
    import asyncio

    import asyncpg

    from fairlane.access import tokens

    async def make() -> str:
        conn = await asyncpg.connect(database)
        try:
            return (await tokens.create(conn, Role.WORKER)).token
        finally:
            await conn.close()

    return asyncio.run(make())


def read_calls(
    scene: Scene, token: str, acting_for: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Every call that reads: plain, with each canary for a filter, and about each of acme's ids."""
    with calls_of(scene.address, token, acting_for) as http:
        for operation in GETS:
            path = operation.path.removeprefix(PREFIX)
            if path.endswith("/stream") or (path.endswith("/events") and "{" in path):
                continue
            if "{" not in path:
                names = [each.get("name") for each in operation.document.get("parameters", ())]
                yield path, http.get(path)
                for name in set(names) & {"q", "correlation_id", "name", "cursor", "key", "label"}:
                    sent = scene.canary("correlation id")
                    yield f"{path}?{name}=", http.get(path, params={name: sent})
                continue
            head, tail = path[: path.index("{")], path[path.index("}") + 1 :]
            for thing in scene.ids.values():
                yield path, http.get(f"{head}{thing}{tail}")


def read_pages(scene: Scene, token: str, tenant: str) -> Iterator[tuple[str, Any]]:
    """Every page, below one's own path and below acme's."""
    with signed_in(scene.address, token) as http:
        for page in PAGES_READ:
            if page.name in ("events", "home"):
                continue
            path = page.path.replace(":path", "")
            if path.count("{") == 0:
                yield page.name, http.get(path, params={"q": scene.canary("correlation id")})
            elif path.count("{") == 1 and page.of_tenant:
                yield page.name, http.get(path.format(tenant=tenant))
                yield f"{page.name} of acme", http.get(path.format(tenant="acme"))
            elif page.of_tenant:
                hole = path.rsplit("{", 1)[1].split("}")[0]
                which = {"dead": "dead", "job": "done"}.get(hole, hole)
                thing = scene.ids.get(which, scene.ids["queued"])
                yield page.name, http.get(path.format_map({"tenant": tenant, hole: thing}))


def seen(answers: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, httpx2.Response, str]]:
    for name, answer in answers:
        headers = "\n".join(f"{key}: {value}" for key, value in answer.headers.items())
        yield name, answer, f"{headers}\n{answer.text}"


# Nobody is shown these: they are in no answer, or only in what a worker is given.
UNSHOWN = {"tracestate", "bulk filter"}


def test_the_canaries_can_be_seen_by_their_own_tenant(scene: Scene) -> None:
    """Or else it would prove nothing that others do not see them."""
    found: set[str] = set()
    token = scene.token("acme admin")
    for _, answer, _ in seen(read_calls(scene, token)):
        found |= set(scene.canary.found_in(answer.text))
    for _, answer, _ in seen(read_pages(scene, token, "acme")):
        found |= set(scene.canary.found_in(answer.text))
    assert len(scene.canary.known) >= 30
    assert set(scene.canary.known) - found <= UNSHOWN


def sweep(tally: Tally, who: str, answers: Iterator[tuple[str, Any]], canary: Canaries) -> None:
    for name, answer, text in seen(answers):
        tally.injected += 1
        tally.operations += 1
        shown = canary.found_in(text)
        tally.hold(not shown, f"{who} is shown {shown} by {name}")
        tally.hold(answer.status_code < 500, f"{who}, {name}: {answer.status_code} {answer.text}")


@pytest.mark.parametrize(
    "role",
    [
        "admin",
        pytest.param("member", marks=pytest.mark.scene),
        pytest.param("viewer", marks=pytest.mark.scene_long),
    ],
)
def test_no_answer_to_another_tenant_has_one(scene: Scene, role: str) -> None:
    """What a caller sends itself may come back; it knows it anyway."""
    canary = scene.canary.without("correlation id", "event id")
    token = scene.token(f"other {role}")
    with tallied("canaries in answers and pages") as tally:
        sweep(tally, f"other's {role}", read_calls(scene, token), canary)
        sweep(tally, f"other's {role}", read_pages(scene, token, "other"), canary)
    assert tally.injected > 150


@pytest.mark.scene
def test_no_answer_to_an_operator_who_acts_for_another_tenant_has_one(scene: Scene) -> None:
    canary = scene.canary.without("correlation id", "event id")
    token = scene.token("operator")
    of_tenant = [each for each in GETS if each.of_tenant]
    assert of_tenant
    with tallied("canaries in an operator's answers for another") as tally:
        answers = (
            (name, answer)
            for name, answer in read_calls(scene, token, "other")
            if not name.startswith("/admin") and not name.startswith("/definitions")
        )
        sweep(tally, "an operator for other", answers, canary)


def test_no_event_of_a_stream_to_another_tenant_has_one(scene: Scene) -> None:
    """While acme works; ends with something of the reader's own, so that it is known to be live."""
    heard: list[str] = []
    over = threading.Event()
    began = threading.Event()

    def listen() -> None:
        with (
            calls_of(scene.address, scene.token("other viewer")) as http,
            http.stream("GET", "/stream") as answer,
        ):
            for line in answer.iter_lines():
                heard.append(line)
                began.set()
                if '"corr-of-other"' in line:
                    break
        over.set()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    with tallied("canaries in streams") as tally:
        assert began.wait(20)
        plant(scene.address, scene.token("acme admin"), scene.token("worker"), again(scene.canary))
        with calls_of(scene.address, scene.token("other member")) as http:
            mine = {"definition_key": "a.task", "correlation_id": "corr-of-other"}
            good(http.post("/jobs", json=mine))
        assert over.wait(20), heard
        tally.injected += len(scene.canary.known)
        tally.operations += len(heard)
        text = "\n".join(heard)
        tally.hold(not scene.canary.found_in(text), f"shown {scene.canary.found_in(text)}")
        tally.hold('"acme"' not in text, "acme is named")


def again(canary: Canaries) -> Canaries:
    """The same canaries, but for those that may be there once only."""
    once = ("event id", "view name", "trigger label", "dedupe key")
    found = Canaries({name: each for name, each in canary.known.items() if name not in once})
    for name in once:
        canary.known[f"second {name}"] = found(name)
    return found


LABELS = {
    *("tenant", "queue", "state", "status", "le", "version", "part", "quantile"),
    *("check", "implementation", "major", "minor", "patchlevel", "generation"),
}


def test_metrics_have_names_and_numbers_alone(scene: Scene) -> None:
    """No payload, no id, no key of anybody's; labels by an allow-list, and their number bounded."""
    with tallied("canaries in metrics") as tally:
        headers = {"Authorization": f"Bearer {scene.token('operator')}"}
        for path in ("/metrics", "/autoscale?queue=default", "/healthz", "/readyz"):
            answer = httpx2.get(scene.address + path, headers=headers, timeout=30)
            tally.injected += 1
            shown = scene.canary.found_in(answer.text + str(answer.headers))
            tally.hold(not shown, f"{path} shows {shown}")
            tally.hold(answer.status_code == 200, f"{path}: {answer.status_code}")
        text = httpx2.get(f"{scene.address}/metrics", headers=headers, timeout=30).text
        scrape = Scrape.of(text)
        labels = {name for _, labels in scrape.samples for name, _ in labels}
        tally.hold(labels <= LABELS, f"labels that nobody allowed: {labels - LABELS}")
        tally.hold(len(scrape.samples) < 1500, f"{len(scrape.samples)} series")
        for id_ in scene.ids.values():
            tally.hold(id_ not in text, "the metrics name a thing of a tenant's")


# A correlation id is there to be looked for in the log; the path of a call names what it is about.
IN_LOGS = {"correlation header", "correlation id", "event id"}


def test_the_log_of_the_server_has_none_though_it_tells_all(scene: Scene) -> None:
    """At debug: neither what was sent, nor what was answered, nor a token."""
    with calls_of(scene.address, scene.token("acme admin")) as http:
        http.get("/jobs", params={"q": scene.canary("payload value")})
        http.get(f"/no-such/{'x' * 20}", params={"token": scene.canary("token name")})
        http.post("/jobs", json={"definition_key": scene.canary("wrong definition")})
        http.post("/jobs", content=f'{{"payload": "{scene.canary("broken body")}'.encode())
    until(lambda: scene.process.said("/no-such/"), "the last call is in the log")
    log = scene.process.log.read_text()
    with tallied("canaries in logs") as tally:
        tally.injected = len(scene.canary.known)
        shown = set(scene.canary.found_in(log)) - IN_LOGS
        tally.hold(not shown, f"the log has {shown}")
        for name, token in scene.tokens.items():
            if name != "operator":  # the first one is printed, once
                tally.hold(token not in log, f"the log has the token of {name}")
        tally.hold(log.count(scene.token("operator")) == 1, "the first token is said once")


def test_a_dump_of_the_database_opens_nothing(scene: Scene) -> None:
    """Every text of every table: no token, no secret of a session, whole or in its second half."""
    with signed_in(scene.address, scene.token("other viewer")) as http:
        secret = http.cookies["fairlane_session"]
    halves = [token.rsplit("_", 1)[1] for token in scene.tokens.values()]
    with psycopg.connect(scene.database) as conn, tallied("secrets in a dump") as tally:
        tables = conn.execute(
            "select relname from pg_class where relnamespace = 'fairlane'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition"
        ).fetchall()
        for (table,) in tables:
            rows = conn.execute(f"select t::text from fairlane.{table} t").fetchall()
            text = "\n".join(row[0] for row in rows)
            tally.injected += 1
            tally.operations += len(rows)
            for each in (*halves, secret):
                tally.hold(each not in text, f"{table} has a token or session as it is")
                tally.hold(each.encode().hex() not in text, f"{table} has one in hexadecimal")
