"""`python examples/start.py NAME`: an example with all it needs, until Ctrl-C.

PostgreSQL, server, scheduler and worker come from `fairlane up`. The example's own web application
(`app.py`) is served at the port above, and the server that its jobs call (`appserver.py`) at the
next.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    names = sorted(path.parent.name for path in HERE.glob("*/README.md"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"which example? one of: {', '.join(names)}", file=sys.stderr)
        return 2
    folder = HERE / sys.argv[1]
    port = int(os.environ.get("PORT", "8080"))
    # A job names a command; where it is, the worker knows by its PATH.
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ["APP_SERVER_URL"] = f"http://127.0.0.1:{port + 2}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    up = [sys.executable, "-m", "fairlane", "up", "--port", str(port), *app_of(folder)]
    programs = [subprocess.Popen(up, cwd=folder)]
    try:
        if is_ready(programs[0], port):
            programs += served(folder, port)
        return programs[0].wait()
    except KeyboardInterrupt:
        return 0
    finally:
        for program in reversed(programs):
            program.terminate()
            program.wait()


def app_of(folder: Path) -> list[str]:
    """Where the example's own tasks are, if it has any."""
    for module in ("pipeline", "tasks"):
        if (folder / f"{module}.py").exists():
            return ["--app", f"{module}:app"]
    return []


def is_ready(system: "subprocess.Popen[bytes]", port: int) -> bool:
    while system.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz"):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


def served(folder: Path, port: int) -> "list[subprocess.Popen[bytes]]":
    found = []
    for above, module in enumerate(("app", "appserver"), start=1):
        if (folder / f"{module}.py").exists():
            print(f"{module}: http://127.0.0.1:{port + above}", flush=True)
            command = [sys.executable, "-m", "uvicorn", f"{module}:web", "--log-level", "warning"]
            found.append(subprocess.Popen([*command, "--port", str(port + above)], cwd=folder))
    return found


if __name__ == "__main__":
    sys.exit(main())
