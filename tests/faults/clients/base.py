"""What every client has at hand: what it may ask for, and how it writes down the answer."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from fairlane.client.aio import OutcomeUnknown
from fairlane.errors import DatabaseUnavailable, FairlaneError
from faults import clocks
from faults.history import Call

# Most are cheap; some try what can go wrong.
MIX = {
    "quick": 40,
    "threaded": 12,
    "urgent": 8,
    "slow": 5,
    "speaks": 6,
    "apart": 1,
    "program": 3,
    "flaky": 6,
    "hopeless": 2,
    "refused": 2,
    "snoozy": 3,
    "limited": 8,
}
PATIENCE = 15.0


class Notes:
    """The witness C: every call with its begin, end and answer."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._known: dict[str, list[str]] = defaultdict(list)  # acknowledged, by tenant
        self._numbers = 0

    def _job(self, dice: random.Random) -> tuple[str, dict[str, Any]]:
        (key,) = dice.choices(list(MIX), list(MIX.values()))
        payload: dict[str, Any] = {"n": dice.randrange(1000)}
        if key == "program":
            payload["seconds"] = "0.02"
        return key, payload

    def _name(self) -> str:
        self._numbers += 1
        return f"c-{self._numbers}"

    def _recent(self, tenant: str, dice: random.Random) -> str | None:
        known = self._known[tenant][-40:]
        return dice.choice(known) if known else None

    async def _tell(
        self,
        kind: str,
        tenant: str,
        name: str,
        ask: Callable[[], Awaitable[tuple[str | None, dict[str, Any]]]],
        **more: Any,
    ) -> Call:
        began = clocks.now()
        outcome, detail, answer = await outcome_of(ask)
        job, told = answer if answer else (None, {})
        detail = {**detail, **more, **told}
        call = Call(kind, tenant, name, began, clocks.now(), outcome, job, detail)
        self._note(call)
        return call

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        if call.outcome == "ok" and call.job and call.op not in ("read", "event"):
            self._known[call.tenant].append(call.job)


async def outcome_of(ask: Callable[[], Awaitable[Any]]) -> tuple[str, dict[str, Any], Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            return "ok", {}, await ask()
    except OutcomeUnknown as error:
        return "info", {"error": str(error)}, None
    except DatabaseUnavailable as error:
        return "fail", {"error": str(error)}, None  # it says that nothing was done
    except FairlaneError as error:
        return "fail", {"error": str(error), "answered": True}, None
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return "info", {"error": repr(error)}, None
    except asyncpg.InternalClientError as error:
        return "info", {"error": repr(error)}, None
