"""An example on a database of its own: its programs as real processes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from support.ports import free_port
from support.workers import Process, until

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"


class Program(Process):
    """A program of an example, in the example's folder."""

    def __init__(
        self, command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.log = log
        with log.open("wb") as output:
            self.popen = subprocess.Popen(
                command,
                env={
                    **os.environ,
                    "PATH": f"{folder}:{PATH}",
                    "PYTHONUNBUFFERED": "1",
                    **environment,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )


class Example:
    """One example's programs and the database they share."""

    def __init__(self, name: str, url: str, logs: Path) -> None:
        self.folder = ROOT / "examples" / name
        self.url = url
        self.db = psycopg.connect(url, autocommit=True)
        self._logs = logs
        self._programs: list[Program] = []
        self._workers: list[Program] = []
        self._clients: dict[httpx2.Client, Program] = {}

    def run(self, *command: str, **environment: str) -> Program:
        log = self._logs / f"{len(self._programs)}-{Path(command[0]).name}.log"
        variables = {"FAIRLANE_DATABASE_URL": self.url, **environment}
        program = Program(command, self.folder, log, variables)
        self._programs.append(program)
        return program

    def fairlane(self, *arguments: str, **environment: str) -> Program:
        return self.run(sys.executable, "-m", "fairlane", *arguments, **environment)

    def worker(self, *arguments: str, **environment: str) -> Program:
        """A worker, once it serves."""
        return self.works(self.fairlane("worker", *arguments, **environment))

    def works(self, worker: Program, said: str = "serves") -> Program:
        """A worker by any name: it serves, and ends with its test."""
        self._workers.append(worker)
        worker.until_said(said)
        return worker

    def end_workers(self) -> None:
        for worker in self._workers:
            worker.popen.kill()
            worker.popen.wait()
        self._workers.clear()
        # Nothing of one test is left to run in the next.
        self.db.execute("select fairlane.cancel(id) from fairlane.job where status <> 'running'")

    def web(self, module: str = "app:web", **environment: str) -> httpx2.Client:
        """The example's own application, once it answers."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", module, "--port", str(port)]
        client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        self._clients[client] = self.run(*command, **environment)
        until(lambda: _answers(client), f"{module} answers")
        return client

    def log_of(self, client: httpx2.Client) -> Path:
        """What the application behind a client printed."""
        return self._clients[client].log

    def ask(self, query: str, *values: Any) -> Any:
        """The first column of the first row."""
        row = self.db.execute(query, values).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for program in self._programs:
            program.popen.kill()
            program.popen.wait()
        self.db.close()


def _answers(client: httpx2.Client) -> bool:
    try:
        client.get("/openapi.json")
    except httpx2.TransportError:
        return False
    return True
