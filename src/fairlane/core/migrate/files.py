"""The SQL files as this code has them, and what is said about each.

`sql/migrations/about.toml` says of a migration which locks it takes on tables that are in use
(a test holds it to what pg_locks shows) and whom it still fits: code that knows no migration after
`fits` goes on working on the schema that it makes. It stands beside the files, which never change.
"""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.errors import MigrationError

REPEATABLE = "functions, views and grants"


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    text: str
    fits: int | None = None
    locks: Mapping[str, str] = field(default_factory=dict)

    @property
    def checksum(self) -> str:
        return _checksum(self.text)

    @property
    def in_transaction(self) -> bool:
        return not self.text.startswith("-- fairlane: no-transaction")

    @property
    def record(self) -> str:
        fits = "null" if self.fits is None else self.fits
        return (
            "insert into fairlane.migration (number, name, checksum, fits) "  # noqa: S608
            f"values ({self.number}, '{self.name}', '{self.checksum}', {fits});\n"
        )


@dataclass(frozen=True)
class Source:
    migrations: tuple[Migration, ...]
    repeatable: tuple[tuple[str, str], ...]
    repeatable_locks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Source":
        about = _about(folder / "migrations" / "about.toml")
        migrations: dict[int, Migration] = {}
        for path in sorted(folder.glob("migrations/*.sql")):
            if not re.fullmatch(r"\d{4}_[a-z0-9_]+", path.stem):
                raise MigrationError(f"{path.name} must be named like 0001_initial.sql")
            said = about.get(path.stem, {})
            migration = Migration(
                int(path.stem[:4]), path.stem, _text(path), said.get("fits"), said.get("locks", {})
            )
            if other := migrations.get(migration.number):
                raise MigrationError(f"{other.name} and {path.stem} have the same number")
            migrations[migration.number] = migration
        repeatable = [
            *sorted(folder.glob("functions/*.sql")),
            *sorted(folder.glob("views/*.sql")),
            *folder.glob("grants.sql"),
        ]
        return cls(
            tuple(migrations.values()),
            tuple((str(path.relative_to(folder)), _text(path)) for path in repeatable),
            about.get(REPEATABLE, {}).get("locks", {}),
        )

    @property
    def checksum(self) -> str | None:
        """Of all that is repeatable, together; nothing if there is nothing."""
        if not self.repeatable:
            return None
        return _checksum("\0".join(part for file in self.repeatable for part in file))

    @property
    def newest(self) -> int:
        return max((migration.number for migration in self.migrations), default=0)

    @property
    def record(self) -> str:
        return (
            "insert into fairlane.repeatable (checksum, applied_at) "  # noqa: S608
            f"values ('{self.checksum}', clock_timestamp())\n"
            "on conflict (checksum) do update set applied_at = excluded.applied_at;\n"
        )


def _about(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(_text(path)) if path.exists() else {}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
