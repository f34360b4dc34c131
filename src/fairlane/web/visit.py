"""One request of somebody who may make it: what a view is given, and all that it needs."""

import hashlib
import re
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from fairlane.access.principal import Principal
from fairlane.access.roles import Permission, Role
from fairlane.api.correlating import correlated
from fairlane.api.job_service import reading
from fairlane.api.problems import Problem
from fairlane.api.service import Service
from fairlane.core.connect import Connection
from fairlane.web import shell
from fairlane.web.forgery import form_token
from fairlane.web.preferences import Preferences
from fairlane.web.proxies import Front
from fairlane.web.sessions import Session
from fairlane.web.undoing import Told, Undo
from fairlane.web.urls import safe_next

if TYPE_CHECKING:
    from fairlane.web.app import UI
    from fairlane.web.pages import Page

FRAGMENT = "X-Fragment"
SAID = "fairlane_said"
MOVING = re.compile(r'(<time [^>]*data-as="(?:ago|for)"[^>]*>)[^<]*')


class Visit:
    """`who` acts for `tenant` wherever the path names one; all that is read and done goes through
    `reading()` and the service, which act as them."""

    def __init__(
        self,
        ui: "UI",
        request: Request,
        page: "Page",
        front: Front,
        who: Principal | None,
        form_secret: str,
    ) -> None:
        self.ui = ui
        self.request = request
        self.page = page
        self.front = front
        self._who = who
        self.session: Session | None = None
        self.form_secret = form_secret
        self.form: FormData = FormData()
        self.prefs = Preferences.of(request.cookies.get("fairlane_prefs"))
        self.now = datetime.now(UTC)

    def admit(self, who: Principal | None, session: "Session | None" = None) -> None:
        self._who, self.session = who, session

    def leave(self) -> None:
        self._who = self.session = None

    @property
    def secret(self) -> str:
        """What forms are tied to: the session or, where the host signs people in, a cookie."""
        return self.form_secret if self.session is None else self.session.secret

    @property
    def here(self) -> Service:
        return self.ui.service

    @property
    def who(self) -> Principal:
        if self._who is None:
            raise Problem(401, "sign in first", "unauthenticated")
        return self._who

    @property
    def is_signed_in(self) -> bool:
        return self._who is not None

    @property
    def tenant(self) -> str | None:
        return None if self._who is None else self._who.tenant

    def may(self, permission: str) -> bool:
        """`may("member")`: whether a button of that role is shown."""
        return self._who is not None and self._who.may(Permission(permission))

    @property
    def is_operator(self) -> bool:
        return self._who is not None and self._who.role is Role.OPERATOR

    def reading(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction that sees what `who` may see, and may take as long as a read may."""
        return reading(self.here, self.who)

    # What was asked --------------------------------------------------------

    def part(self, name: str) -> str:
        """A part of the path."""
        found: str = self.request.path_params[name]
        return found

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).replace("\x00", "")

    def field(self, name: str, default: str = "") -> str:
        """A field of the form that was sent."""
        value = self.form.get(name, default)
        return value.replace("\x00", "") if isinstance(value, str) else default

    def fields(self, name: str) -> list[str]:
        return [each for each in self.form.getlist(name) if isinstance(each, str)]

    @property
    def given(self) -> dict[str, str]:
        """All fields of the form that are text."""
        return {name: self.field(name) for name in self.form}

    @property
    def request_id(self) -> str:
        return correlated(self.request.scope, self.request.headers)

    # What is answered ------------------------------------------------------

    def u(self, name: str, *parts: Any, **query: Any) -> str:
        return self.ui.urls.path(self.front.root, name, *parts, **query)

    @property
    def wants(self) -> list[str]:
        """The regions that are asked for alone; none when the whole page is."""
        return [each for each in self.request.headers.get(FRAGMENT, "").split(",") if each]

    async def show(self, template: str, status: int = 200, **context: Any) -> Response:
        """The page or, where X-Fragment asks for regions, these alone: the same partials."""
        self.context = {"visit": self, "u": self.u, **context}
        if self.wants:
            return self._fragments(self.wants)
        frame = await shell.frame_of(self)
        body = self.ui.templates.render(f"pages/{template}", self, {**frame, **self.context})
        response = Response(body, status, media_type="text/html")
        response.headers["Vary"] = FRAGMENT
        if SAID in self.request.cookies:
            response.delete_cookie(SAID, path=self.cookie_path)
        return response

    def _fragments(self, names: list[str]) -> Response:
        for name in names:
            if not self.ui.templates.has(f"regions/{name}.html"):
                raise Problem(404, "there is no such region; load the page again", "no-region")
        body = "".join(
            self.ui.templates.render(f"regions/{name}.html", self, self.context) for name in names
        )
        # How long ago something was, and how long it runs, is kept going by the browser: that alone
        # is no change.
        same = MOVING.sub(r"\1", body)
        tag = f'W/"{hashlib.sha256(same.encode()).hexdigest()[:20]}"'
        headers = {"ETag": tag, "Vary": FRAGMENT}
        if self.request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="text/html", headers=headers)

    def done(self, said: str, to: str, undo: Undo | None = None) -> Response:
        """After a change: tell it, with what takes it back, and go on. A script stays where it is
        unless `to` is elsewhere; without one the next page tells."""
        if undo is not None:
            undo = Undo(undo.name, undo.parts, {**undo.fields, "next": to})
        if self.request.headers.get("x-quiet"):
            return JSONResponse({"said": said, "to": to, "undo": self.undo_form(undo)})
        response = RedirectResponse(to, 303)
        self.set_cookie(response, SAID, Told(said, undo).cookie, max_age=60)
        return response

    def undo_form(self, undo: Undo | None) -> dict[str, Any] | None:
        """Where it is sent and with which fields; nothing for who may not."""
        if undo is None:
            return None
        page = next(each for each in self.ui.pages if each.name == undo.name)
        if not page.lets_in(self.who) or page.path.count("{") != len(undo.parts):
            return None
        return {"url": self.u(undo.name, *undo.parts), "fields": undo.fields}

    def back(self, name: str, *parts: Any, **query: Any) -> str:
        """The page that a form was on, if it says so; else the one named."""
        found = safe_next(self.front.root, self.field("next"))
        return found or self.u(name, *parts, **query)

    @property
    def said(self) -> Told | None:
        """What the change before this page has to tell."""
        return Told.of(self.request.cookies.get(SAID, ""))

    @property
    def form_token(self) -> str:
        return form_token(self.secret)

    @property
    def cookie_path(self) -> str:
        return self.front.root or "/"

    def set_cookie(self, response: Response, name: str, value: str, **how: Any) -> None:
        response.set_cookie(
            name,
            value,
            path=self.cookie_path,
            secure=self.front.is_secure,
            httponly=True,
            samesite="lax",
            **how,
        )
