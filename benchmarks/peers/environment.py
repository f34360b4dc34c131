"""Where and with what it was measured: figures without it say nothing."""

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import asyncpg
from benchmarks.peers.crew import ROOT

SETTINGS = (
    *("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"),
    *("wal_level", "autovacuum_naptime", "jit"),
)
PACKAGES = (
    *("pgqueuer", "awa-pg", "chancy", "procrastinate", "dbos", "saq"),
    *("celery", "dramatiq", "rq", "arq", "taskiq", "taskiq-redis"),
    *("asyncpg", "psycopg", "redis", "uvloop"),
)


async def environment(url: str, redis: str) -> dict[str, Any]:
    connection = await asyncpg.connect(url)
    try:
        postgres = await connection.fetchval("show server_version")
        rows = await connection.fetch(
            "select name, current_setting(name) as value from pg_settings where name = any ($1)",
            list(SETTINGS),
        )
    finally:
        await connection.close()
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "--short=12", "HEAD") or "unknown",
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no", "--", "src")),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "processor": _processor(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "postgresql": postgres.split()[0],
        "settings": {row["name"]: row["value"] for row in rows},
        "redis": _redis_version() if redis else None,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "load": round(os.getloadavg()[0], 2),
    }


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _redis_version() -> str | None:
    program = shutil.which("redis-server")
    if program is None:
        return None
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return told.partition("v=")[2].split()[0]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
