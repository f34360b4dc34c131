"""Secrets by reference: a definition names them, only the worker ever holds them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fairlane.errors import FairlaneError
from fairlane.redact.known import KNOWN
from fairlane.redact.marker import MARKER

DIRECTORY = "FAIRLANE_SECRETS_DIR"
PREFIX = "FAIRLANE_SECRET_"
LONGEST = 65_536  # bytes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\Z")


class SecretMissing(FairlaneError):
    """A secret that a definition names cannot be had here; its value is never told."""


def fault_in(name: object) -> str | None:
    """What is wrong with the name of a secret, if anything."""
    if not isinstance(name, str) or not _NAME.match(name):
        return "the name of a secret is letters, digits, '_', '-' and '.'"
    # FAIRLANE_SECRET_KEY is the installation's own key: from it tokens and signatures are made,
    # and no template may send it anywhere.
    if variable(name) == PREFIX + "KEY":
        return f'a secret cannot be called "{name}"; {PREFIX}KEY is the installation\'s own'
    return None


def variable(name: str) -> str:
    return PREFIX + re.sub(r"[-.]", "_", name).upper()


class Secrets:
    """Looks secrets up in the environment, then in a directory; knows again what it has given."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._seen: set[str] = set()

    def __repr__(self) -> str:
        return f"Secrets({len(self._seen)} seen)"

    @property
    def seen(self) -> frozenset[str]:
        """Every value that was looked up, for whoever must keep them out of a text."""
        return frozenset(self._seen)

    def lookup(self, name: str) -> str:
        if fault := fault_in(name):
            raise SecretMissing(fault)
        value = self._environ.get(variable(name)) or self._from_file(name)
        if not value:
            raise SecretMissing(
                f'secret "{name}" is not known to this worker; set {variable(name)}, '
                f"or put a file {name} into {DIRECTORY}"
            )
        if value not in self._seen:
            self._seen.add(value)
            KNOWN.add([value])  # what this process writes goes by it
        return value

    def scrub(self, text: str) -> str:
        """The text without any secret that was looked up."""
        text = KNOWN.hide(text)  # with the ways a value is commonly encoded
        # The short ones too. The longest first: one secret may be the beginning of another.
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, MARKER)
        return text

    def _from_file(self, name: str) -> str | None:
        """Read anew each time: mounted secrets are rotated under a running worker."""
        folder = self._environ.get(DIRECTORY)
        if not folder:
            return None
        path = Path(folder) / name
        try:
            if not path.is_file():  # nor a pipe, which would hold up the worker
                return None
            if path.stat().st_size > LONGEST:
                raise SecretMissing(f'secret "{name}" is larger than {LONGEST} bytes')
            # Editors and `echo` end a file with a line break that nobody means.
            return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SecretMissing(f'secret "{name}" cannot be read: {why}') from None
