"""`python examples/start.py NAME`: an example with all it needs, until Ctrl-C.

PostgreSQL, server, scheduler and worker come from `fairlane up`; the example's own web application,
where it has one (`app.py` with `web`), is served beside it, at the port above.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    names = sorted(path.parent.name for path in HERE.glob("*/README.md"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"which example? one of: {', '.join(names)}", file=sys.stderr)
        return 2
    folder = HERE / sys.argv[1]
    port = int(os.environ.get("PORT", "8080"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-m", "fairlane", "up", "--port", str(port), *app_of(folder)], cwd=folder
    ) as system:
        try:
            if is_ready(system, port) and (folder / "app.py").exists():
                serve(folder, port + 1)
            return system.wait()
        except KeyboardInterrupt:
            system.terminate()
            return system.wait()


def app_of(folder: Path) -> list[str]:
    """Where the example's own tasks are, if it has any."""
    for module in ("pipeline", "tasks"):
        if (folder / f"{module}.py").exists():
            return ["--app", f"{module}:jobs"]
    return []


def is_ready(system: "subprocess.Popen[bytes]", port: int) -> bool:
    while system.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz"):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


def serve(folder: Path, port: int) -> None:
    print(f"application: http://127.0.0.1:{port}/docs")
    command = [sys.executable, "-m", "uvicorn", "app:web", "--port", str(port)]
    subprocess.run([*command, "--log-level", "warning"], cwd=folder, check=False)


if __name__ == "__main__":
    sys.exit(main())
