"""Load on one URL: by wrk where it is installed, else by a small generator of our own."""

import asyncio
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Load:
    url: str
    token: str
    body: str | None = None

    async def run(self, connections: int, seconds: float) -> "Measured":
        if shutil.which("wrk"):
            return await asyncio.to_thread(self._wrk, connections, seconds)
        return await self._ours(connections, seconds)

    def _wrk(self, connections: int, seconds: float) -> "Measured":
        script = [f'wrk.headers["Authorization"] = "Bearer {self.token}"']
        if self.body is not None:
            script += [
                'wrk.method = "POST"',
                'wrk.headers["Content-Type"] = "application/json"',
                f"wrk.body = [[{self.body}]]",
            ]
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
            lua.write("\n".join(script))
            lua.flush()
            words = ["-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", lua.name]
            said = subprocess.run(
                ["wrk", *words, self.url], capture_output=True, text=True, check=True
            ).stdout
        if "Non-2xx" in said:
            raise SystemExit(f"calls were refused:\n{said}")
        rate = re.search(r"Requests/sec:\s*([0-9.]+)", said)
        late = re.search(r"99%\s+([0-9.]+)(us|ms|s)", said)
        assert rate is not None, said
        assert late is not None, said
        unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[late[2]]
        return Measured(float(rate[1]), float(late[1]) * unit)

    async def _ours(self, connections: int, seconds: float) -> "Measured":
        times: list[float] = []
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(self._caller(deadline, times) for _ in range(connections)))
        times.sort()
        return Measured(len(times) / seconds, times[int(len(times) * 0.99)] * 1000)

    async def _caller(self, deadline: float, times: list[float]) -> None:
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        body = (self.body or "").encode()
        head = [
            f"{'GET' if self.body is None else 'POST'} {path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Authorization: Bearer {self.token}",
        ]
        if self.body is not None:
            head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        request = "\r\n".join([*head, "", ""]).encode() + body
        while (began := time.perf_counter()) < deadline:
            writer.write(request)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not answer.startswith(b"http/1.1 2"):
                raise SystemExit(f"a call was refused: {answer.decode()}")
            found = re.search(rb"content-length: (\d+)", answer)
            assert found is not None
            await reader.readexactly(int(found[1]))
            times.append(time.perf_counter() - began)
        writer.close()


@dataclass(frozen=True)
class Measured:
    per_second: float
    p99_ms: float
