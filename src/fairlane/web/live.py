"""`/events?topics=…`: tells a browser which regions of its pages are no longer true.

Topics are `jobs:TENANT`, `job:ID:TENANT` and, for operators, `ops`, `work`, `workers`, `alerts`
and `fairness`. A stream says `dirty` with the topics that changed, at most once in 250 ms, and
`bye` when the session has ended. It carries nothing else: what a page shows is fetched by the page,
by the same rules as the page itself.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from uuid import UUID

from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.api.following import Stream, event
from fairlane.api.problems import Problem
from fairlane.api.service import Service
from fairlane.api.streams import Events
from fairlane.ids import parse_id
from fairlane.web.topics import Looks
from fairlane.web.visit import Visit

log = logging.getLogger("fairlane.web")

EVERY = 0.12  # seconds between two looks, or four times as long as a look takes
QUIET = 0.25  # that a stream is left in peace after it was told something
MOST = 40  # topics of one browser


class Watcher(Stream):
    """One browser, and what its pages show."""

    def __init__(self, who: Principal, topics: frozenset[str], secret: str) -> None:
        super().__init__(who, None, 0)
        self.topics = topics
        self.secret = secret
        # What changed since its pages were made: after the first look all of it is fetched once.
        self._dirty = set(topics)
        self._told_at = 0.0

    def soil(self, changed: Iterable[str]) -> None:
        self._dirty |= self.topics.intersection(changed)

    def flush(self, now: float) -> None:
        if self._dirty and now - self._told_at >= QUIET:
            self.tell([event("dirty", {"topics": sorted(self._dirty)})])
            self._dirty.clear()
            self._told_at = now

    def end(self, why: str) -> None:
        if not self.is_over:
            self._put(event("bye", {"detail": why}))
            self.is_over = True


class Feed:
    """The browsers of this process. One look at the database serves all of them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watchers: set[Watcher] = set()
        self._task: asyncio.Task[None] | None = None
        self._looks = Looks()
        self._listens = False

    def open(self, who: Principal, topics: frozenset[str], secret: str) -> Watcher:
        limits = self._service.limits
        mine = sum(each.who.subject == who.subject for each in self._watchers)
        if mine >= limits.streams_per_token or len(self._watchers) >= limits.streams:
            detail = "as many live pages stand open as one may have; close one"
            raise Problem(429, detail, "too-many", retry_after=30)
        watcher = Watcher(who, topics, secret)
        self._watchers.add(watcher)
        if not self._listens:
            self._listens = True
            self._service.door.on_revoked(self._revoked)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return watcher

    def leave(self, watcher: Stream) -> None:
        self._watchers.discard(watcher)

    def ended(self, secret: str) -> None:
        """Somebody signed out."""
        for each in self._watchers:
            if each.secret == secret:
                each.end("signed out")

    def _revoked(self, token_id: str) -> None:
        for each in self._watchers:
            if each.who.token_id == token_id:
                each.end("the token was revoked")

    async def _run(self) -> None:
        """As long as anybody looks; an idle server asks nothing."""
        while self._watchers and not self._service.stopping.is_set():
            began = time.monotonic()
            with contextlib.suppress(asyncio.CancelledError):
                await self.tick()
            took = time.monotonic() - began
            await asyncio.sleep(max(EVERY, 4 * took))

    async def tick(self) -> None:
        # Whoever comes while we look is told by the next look.
        watchers = list(self._watchers)
        topics = frozenset[str]().union(*(each.topics for each in watchers))
        try:
            changed = await self._looks.changed(self._service, topics)
        except Exception as error:
            # The next look may do. Whoever looks has missed nothing that it would not see then.
            log.warning("a look at what changes failed: %s", error)
            await asyncio.sleep(1)
            return
        now = time.monotonic()
        for each in watchers:
            each.soil(changed)
            each.flush(now)


async def events(visit: Visit) -> Response:
    topics = frozenset(each for each in visit.query("topics").split(",") if each)
    if not topics or len(topics) > MOST:
        raise Problem(422, f"name 1 to {MOST} topics", "invalid")
    for topic in topics:
        await _refuse_others(visit, topic)
    session = visit.session
    watcher = visit.ui.feed.open(visit.who, topics, "" if session is None else session.secret)

    async def is_good() -> bool:
        return session is None or await visit.ui.sessions.find(session.secret) is not None

    return Events(visit.here, watcher, is_good, visit.ui.feed.leave)


async def _refuse_others(visit: Visit, topic: str) -> None:
    """A topic is its tenant's. Of another's nobody is told even that something changed."""
    name, *rest = topic.split(":")
    if name in Looks.OF_OPERATORS and not rest and visit.who.role is Role.OPERATOR:
        return
    if name == "job" and len(rest) == 2 and _is_id(rest[0]):
        rest = rest[1:]
    elif name == "job" or name not in Looks.OF_TENANT or len(rest) != 1:
        raise Problem(403, f"there is no topic {topic[:80]}, or it is not yours", "forbidden")
    await visit.here.door.acting_for(visit.who, rest[0])


def _is_id(text: str) -> bool:
    with contextlib.suppress(Exception):
        return str(parse_id(text)) == text and UUID(text) is not None
    return False
