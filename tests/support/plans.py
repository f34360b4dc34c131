"""The plans that the server really took, of every statement inside every function."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from support.cluster import Cluster
from support.core import Core

SETTINGS = """
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_nested_statements = on;
set auto_explain.log_format = json;
set client_min_messages = log;
"""


@dataclass
class Plans:
    """What was planned since `clear`."""

    found: list[dict[str, Any]] = field(default_factory=list)

    def listen(self, conn: Any, message: Any) -> None:
        _, marker, text = message.message.partition("plan:\n")
        if marker:
            self.found.append(json.loads(text))

    def clear(self) -> None:
        self.found.clear()

    def nodes(self) -> Iterator[dict[str, Any]]:
        pending = [plan["Plan"] for plan in self.found]
        while pending:
            node = pending.pop()
            pending += node.get("Plans", [])
            yield node

    def seq_scans(self) -> set[str]:
        """Tables that were read from end to end."""
        return {node["Relation Name"] for node in self.nodes() if node["Node Type"] == "Seq Scan"}

    def whole_indexes(self) -> set[str]:
        """Indexes that were read from end to end: quick as long as there is little."""
        return {
            node["Index Name"]
            for node in self.nodes()
            if "Index Name" in node
            and "Index Cond" not in node
            and node["Node Type"] != "Bitmap Index Scan"
        }

    def indexes(self) -> set[str]:
        """By name; those of partitions by the name that they all have in common."""
        names = {node["Index Name"] for node in self.nodes() if "Index Name" in node}
        return {
            re.sub(r"^history_(\d{8}(_(\d+d|rest))?|default)_", "history_", name) for name in names
        }

    def statements_that_scan(self, name: str) -> str:
        """The statements that read a table or an index from end to end, for the message of a failed
        test."""
        return "\n".join(
            plan["Query Text"]
            for plan in self.found
            if name in (each := Plans([plan])).seq_scans() | each.whole_indexes()
        )


@asynccontextmanager
async def explained(cluster: Cluster, url: str) -> AsyncIterator[tuple[Core, Plans]]:
    """A core whose statements are explained. Only a superuser may load the module."""
    admin = urlunsplit(urlsplit(cluster.admin)._replace(path=urlsplit(url).path))
    conn = await asyncpg.connect(admin)
    plans = Plans()
    conn.add_log_listener(plans.listen)
    try:
        await conn.execute(SETTINGS)
        yield Core(conn), plans
    except asyncpg.InsufficientPrivilegeError:
        pytest.skip("the tests were given a user that may not load auto_explain")
    finally:
        conn.remove_log_listener(plans.listen)
        await conn.close()
