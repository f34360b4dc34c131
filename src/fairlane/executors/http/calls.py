"""What the calls of one worker share: sessions, secrets, keys, and how far they reach."""

import os
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver

from fairlane import config
from fairlane.executors.http import signing
from fairlane.executors.http.reach import ALLOW, AllowList, Reach
from fairlane.executors.http.resolver import CheckedResolver
from fairlane.secrets import Secrets


class HttpCalls:
    """Held by the worker's process, used by every HttpExecutor, closed at the end."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        secret_key: str | None = None,
        names: AbstractResolver | None = None,
    ) -> None:
        """As the environment says, unless another is given; a wrong value is a ConfigError."""
        env = os.environ if environ is None else environ
        self.secrets = Secrets(env)
        self.allow = AllowList.parse(env.get(ALLOW))
        self._secret_key = secret_key or config.load(environ).secret_key
        self._names = names
        self._sessions: dict[Reach, aiohttp.ClientSession] = {}

    def signing_keys(self, sign_with: tuple[str, ...], receiver: str) -> list[bytes]:
        """The definition's own keys, or the one that the receiver has from this installation."""
        if sign_with:
            return [signing.key_of(name, self.secrets.lookup(name)) for name in sign_with]
        if self._secret_key is None:
            return []
        return [signing.key_of(receiver, signing.secret_for(receiver, self._secret_key))]

    def session(self, reach: Reach) -> aiohttp.ClientSession:
        """One for each reach: a connection that one call may have is not lent to another."""
        if reach not in self._sessions:
            self._sessions[reach] = self._opened(reach)
        return self._sessions[reach]

    def _opened(self, reach: Reach) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(reach, self._names or aiohttp.ThreadedResolver()),
            socket_factory=reach.open_socket,
            use_dns_cache=False,
            # A kept connection may be closed by the receiver just as the next call goes out, which
            # would cost that job an attempt.
            force_close=True,
            limit=0,  # slots and gates are the limits
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),  # what one tenant is told is not told to another
            auto_decompress=False,
            trust_env=False,  # a proxy would connect to addresses that nobody has checked
        )

    async def close(self) -> None:
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()
