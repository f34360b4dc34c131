"""Whatever breaks inside, an answer tells nothing of it (S8)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx2
import pytest

from api.calls import UNKNOWN, operations
from api.world import HOST, World
from attacks.cast import Player
from attacks.tally import tallied
from fairlane.access.acting import Database
from fairlane.api.app import asgi
from fairlane.api.limits import Limits
from fairlane.config import Settings
from fairlane.core.calls import Call
from fairlane.web.pages import PAGES
from support.core import Core

CANARY = "canary-inside-9b2e"
INSIDE = f"select secret from fairlane.job /* {CANARY} */ at /srv/fairlane/core.py line 7"
TELLING = (CANARY, "select secret", "/srv/", "fairlane.job", "Traceback", ".py", "asyncpg")


def of_postgres(kind: type[asyncpg.PostgresError]) -> Exception:
    error = kind(INSIDE)
    error.detail = error.hint = error.context = INSIDE
    return error


ERRORS: list[Exception] = [
    RuntimeError(INSIDE),
    of_postgres(asyncpg.UniqueViolationError),
    *(KeyError(INSIDE), ValueError(INSIDE), AssertionError(INSIDE), OSError(2, INSIDE)),
    *(RecursionError(INSIDE), MemoryError(INSIDE), NotImplementedError(INSIDE)),
    *(
        of_postgres(kind)
        for kind in (
            asyncpg.PostgresSyntaxError,
            asyncpg.ForeignKeyViolationError,
            asyncpg.CheckViolationError,
            asyncpg.InsufficientPrivilegeError,
            asyncpg.DataError,
            asyncpg.UndefinedColumnError,
            asyncpg.RaiseError,
            asyncpg.DiskFullError,
            asyncpg.TooManyConnectionsError,
            asyncpg.DeadlockDetectedError,
        )
    ),
]
ENTRIES = ("token_for", "touch_token", "session_for", "tenant_id_of")


class Broken:
    """The database after the door: everything raises but finding out who asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = ERRORS[0]
        self.raised = 0
        real = Database.send

        async def send(database: Database, call: Call) -> Any:
            if any(name in call.sql for name in ENTRIES):
                return await real(database, call)
            raise self._next()

        @asynccontextmanager
        async def acting(*_: Any, **__: Any) -> AsyncIterator[Any]:
            if self.error is not None:
                raise self._next()
            yield

        for name, broken in (("send", send), ("call", self._fail), ("enqueue", self._fail)):
            monkeypatch.setattr(Database, name, broken)
        monkeypatch.setattr(Database, "acting", acting)

    async def _fail(self, *_: Any, **__: Any) -> Any:
        raise self._next()

    def _next(self) -> Exception:
        assert self.error is not None
        self.raised += 1
        return self.error


def chosen(errors: list[Exception]) -> Any:
    """One of the kinds by default, some in `make faults`, all of them in `make faults-long`."""

    def marks(at: int) -> list[pytest.MarkDecorator]:
        return [] if at < 1 else [pytest.mark.scene if at < 3 else pytest.mark.scene_long]

    return [
        pytest.param(error, marks=marks(at), id=type(error).__name__)
        for at, error in enumerate(errors)
    ]


@pytest.mark.parametrize("error", chosen(ERRORS))
async def test_no_call_tells_what_broke_inside(
    world: World, cast: dict[str, Player], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    broken = Broken(monkeypatch)
    broken.error = error
    with tallied("errors inside") as tally:
        for operation in operations():
            role = {"viewer": "admin", "member": "admin"}.get(operation.role, operation.role)
            about = "Zz345678" if "token" in operation.path else UNKNOWN
            body = operation.body
            options = {} if body is None else {"json": body}
            answer = await cast[role].caller.call(operation.method, operation.url(about), **options)
            tally.injected += 1
            text = answer.text + str(answer.headers)
            told = [word for word in TELLING if word in text]
            tally.hold(not told, f"{operation}: {told} in {text}")
            if answer.status_code >= 400:
                kind = answer.headers["content-type"]
                tally.hold(kind == "application/problem+json", f"{operation}: {kind}")
        tally.hold(broken.raised > 60, f"it broke {broken.raised} times")


@pytest.mark.scene
@pytest.mark.parametrize("error", chosen(ERRORS)[:2])
async def test_no_page_tells_what_broke_inside(
    database: str, world: World, core: Core, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    app = asgi(database, settings=Settings(), limits=Limits(rate=0), pages=True)
    operator = await world.caller("operator")
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=HOST) as http,
    ):
        answer = await http.post("/login", data={"token": operator.token})
        assert answer.status_code == 303
        broken = Broken(monkeypatch)
        broken.error = error
        with tallied("errors inside pages") as tally:
            for page in PAGES:
                if page.method != "GET" or not page.needs or page.name == "events":
                    continue
                path = page.path.replace(":path", "")
                holes = dict.fromkeys(("job", "dead", "operation", "trigger", "event"), UNKNOWN)
                holes |= dict.fromkeys(("worker", "alert", "definition"), UNKNOWN)
                holes |= {"tenant": "acme", "queue": "default", "rule": "x", "slug": "acme"}
                answer = await http.get(path.format_map(holes | {"plan": "pro", "token": "x"}))
                tally.injected += 1
                text = answer.text.replace("static/", "")
                told = [word for word in TELLING if word in text]
                tally.hold(not told, f"{page.name}: {told}")
            tally.hold(broken.raised > 20, f"it broke {broken.raised} times")
