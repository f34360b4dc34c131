"""Hosts on one machine: each has a network and a name of its own, and reaches the database by TCP
over a cable that a test can pull."""

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from support.proxy import proxy_before


class Host:
    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.231.{number}.1"  # of the machine, as this host sees it
        self.url = ""
        self._here, self._there = f"{name}a", f"{name}b"
        self._inside = f"10.231.{number}.2"

    def command(self, *words: str) -> list[str]:
        """The command line that runs these words on this host."""
        named = 'hostname "$1" && shift && exec "$@"'
        inside = ["unshare", "--uts", "sh", "-c", named, "sh", self.name, *words]
        return ["ip", "netns", "exec", self.name, *inside]

    def pull_the_cable(self) -> None:
        _run("ip", "link", "set", self._here, "down")

    def put_the_cable_back(self) -> None:
        _run("ip", "link", "set", self._here, "up")

    def build(self) -> None:
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", self._here, "type", "veth", "peer", "name", self._there)
        _run("ip", "link", "set", self._there, "netns", self.name)
        _run("ip", "address", "add", f"{self.address}/30", "dev", self._here)
        _run("ip", "link", "set", self._here, "up")
        within = ("ip", "-n", self.name)
        _run(*within, "address", "add", f"{self._inside}/30", "dev", self._there)
        _run(*within, "link", "set", self._there, "up")
        _run(*within, "link", "set", "lo", "up")
        _run(*self.command("true"))

    def tear_down(self) -> None:
        subprocess.run(["ip", "link", "delete", self._here], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)


@contextlib.contextmanager
def hosts(database: str, count: int) -> Iterator[list[Host]]:
    """So many hosts; where this machine permits none, a skip that says so (with
    FAIRLANE_TEST_ALL a failure)."""
    mark = secrets.token_hex(2)
    numbers = secrets.SystemRandom().sample(range(256), count)
    found = [Host(f"fl{mark}{index}", number) for index, number in enumerate(numbers)]
    with contextlib.ExitStack() as stack:
        try:
            if missing := [each for each in ("ip", "unshare") if shutil.which(each) is None]:
                raise OSError(f"{missing[0]} is not installed")
            for host in found:
                stack.callback(host.tear_down)
                host.build()
                host.url = stack.enter_context(proxy_before(database, host.address)).url
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or error
            reason = f"network namespaces cannot be made here: {str(said).strip()}"
            if os.environ.get("FAIRLANE_TEST_ALL"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield found


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)
