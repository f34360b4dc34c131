"""Runs a job as one HTTP call."""

import time
from datetime import UTC, datetime
from typing import Any

import aiohttp
from yarl import URL

from fairlane.definitions.definition import Definition
from fairlane.executors.base import storable
from fairlane.executors.http import answer
from fairlane.executors.http.calls import HttpCalls
from fairlane.executors.http.reach import AddressRefused
from fairlane.executors.http.reasons import reason
from fairlane.executors.http.refusal import CallRefused
from fairlane.executors.http.request import Request, request_for
from fairlane.executors.http.settings import HttpSettings
from fairlane.executors.results import ResultInvalid, encode
from fairlane.executors.template import ValueMissing
from fairlane.outcome import Done, Failed, Outcome
from fairlane.secrets import SecretMissing
from fairlane.worker.attempt import Attempt


class HttpExecutor:
    """One call for an attempt; cancelling it drops the call."""

    def __init__(self, definition: Definition, calls: HttpCalls) -> None:
        self._definition = definition
        self._settings = HttpSettings.read(definition.settings, definition.arg_schema)
        self._calls = calls
        # As errors and logs tell it: no value of any job, no query.
        self._what = f"{self._settings.method} {self._settings.url.shown}"

    async def run(self, attempt: Attempt) -> Outcome:
        try:
            request = request_for(self._settings, self._calls, attempt)
            session = self._session()
        except (CallRefused, ValueMissing, UnicodeEncodeError) as error:
            # The same job would be refused the next time as well.
            why = "a value is no text" if isinstance(error, UnicodeEncodeError) else str(error)
            return self._failed(f"was not made: {why}", kind="CallRefused", final=True)
        except SecretMissing as error:
            return self._failed(f"was not made: {error}", kind="SecretMissing")
        return await self._call(session, request, attempt)

    def _session(self) -> aiohttp.ClientSession:
        settings = self._settings
        reach = self._calls.allow.reach(settings.url.host, private=settings.allow_private)
        return self._calls.session(reach)

    async def _call(
        self, session: aiohttp.ClientSession, request: Request, attempt: Attempt
    ) -> Outcome:
        connect = self._settings.connect_timeout_seconds
        started = time.monotonic()
        try:
            async with session.request(
                self._settings.method,
                URL(request.url, encoded=True),
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=attempt.timeout, connect=connect, sock_connect=connect
                ),
            ) as response:
                try:
                    outcome = await self._outcome(response)
                finally:
                    response.close()  # what was not read is not waited for
            attempt.ctx().log(
                f"{self._what} answered {response.status}",
                status=response.status,
                seconds=round(time.monotonic() - started, 3),
            )
            return outcome
        except aiohttp.ConnectionTimeoutError:
            return self._failed(f"could not connect within {connect:g} s")
        except TimeoutError:
            return self._failed(
                f"got no answer within its timeout of {attempt.timeout:g} s",
                kind="Timeout",
                outcome="timeout",
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = isinstance(getattr(error, "os_error", None), AddressRefused)
            kind = "CallRefused" if refused else "HttpFailed"
            return self._failed(reason(error), kind=kind, final=refused)

    async def _outcome(self, response: aiohttp.ClientResponse) -> Outcome:
        status = response.status
        if 200 <= status < 300:
            try:
                most = self._settings.max_response_bytes
                value = await answer.result(response, most)
                # Written anew it may be a little longer than it came.
                return Done(encode(value, self._definition.key, 2 * most))
            except (answer.AnswerInvalid, ResultInvalid) as error:
                return self._failed(f"answered {status} {error}", status=status)
        if 300 <= status < 400:
            return self._failed(
                f"answered {status}; redirects are not followed", status=status, final=True
            )
        said = await answer.excerpt(response, self._calls.secrets.scrub)
        again = answer.worth_another(status)
        wait = answer.retry_after(response.headers, datetime.now(UTC)) if again else None
        return self._failed(
            f"answered {status}{': ' if said else ''}{said}",
            status=status,
            final=not again,
            retry_after=wait,
        )

    def _failed(
        self,
        what: str,
        *,
        kind: str = "HttpFailed",
        status: int | None = None,
        final: bool = False,
        retry_after: float | None = None,
        outcome: str = "failed",
    ) -> Failed:
        error: dict[str, Any] = {
            "type": kind,
            "message": storable(self._calls.secrets.scrub(f"{self._what} {what}")),
        }
        if status is not None:
            error["status"] = status
        if retry_after is not None:
            error["retry_after"] = retry_after
        return Failed(error, final=final, retry_after=retry_after, outcome=outcome)
