"""The image, as far as it can be built without an engine: its own steps, in a folder.

The base image, its users and the layers are not run here; the steps that make the environment are,
word for word, and what comes of them runs as the image's user on a real PostgreSQL.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.files import DEPLOY, ROOT, compose, environment, running
from support.needing import lacking
from support.programs import needed
from support.proxy import proxy_before

UID = "10001"
# As that user. The interpreter here may lie where only root looks: it may look there too, no more.
LOOKS = "-all,+dac_read_search"
AS_USER = ["setpriv", "--reuid", UID, "--regid", UID, "--clear-groups", "--no-new-privs"]
AS_USER += [f"--inh-caps={LOOKS}", f"--ambient-caps={LOOKS}", "--"]
JOBS = """
definitions:
  - key: list
    executor: command
    command: {argv: [ls, /]}
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # pip fetches and unpacks in earnest


def steps() -> Iterator[tuple[str, str]]:
    """Every instruction of the Dockerfile with its text, lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        name, _, rest = line.partition(" ")
        if rest:
            yield name, rest.strip()


def copied(words: str, build: Path) -> None:
    """A COPY, of what .dockerignore lets through."""
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    *sources, target = words.split()
    for source in sources:
        assert source in allowed, f".dockerignore keeps {source} from the build"
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, build / target, ignore=ignored)
        else:
            shutil.copy(ROOT / source, build / target)


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """/opt/fairlane of the image."""
    needed("setpriv", "util-linux")
    if os.getuid() != 0:
        lacking("needs root, to become the image's user")
    with tempfile.TemporaryDirectory(prefix="fairlane-image-") as made:
        root = Path(made)
        root.chmod(0o755)
        build = root / "build"
        build.mkdir()
        # The base image's programs are ours.
        path = f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}"
        stages = 0
        for name, words in steps():
            stages += name == "FROM"
            if stages != 1:
                continue
            if name == "COPY":
                copied(words, build)
            elif name == "RUN":
                line = words.replace("/opt/fairlane", str(root / "fairlane"))
                done = subprocess.run(
                    ["sh", "-ec", line],
                    cwd=build,
                    env={**environment(), "PATH": path},
                    capture_output=True,
                    text=True,
                )
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        subprocess.run(["chmod", "-R", "a+rX", root], check=True)
        yield root / "fairlane"


def words_of(instruction: str) -> list[str]:
    """The last of its kind, in its form of a list."""
    text = dict(steps())[instruction]
    found: list[str] = json.loads(text[text.index("[") :])
    return found


def test_the_image_runs_as_its_user_and_needs_no_home_to_write_to(
    image: Path, empty_database: str, tmp_path: Path
) -> None:
    (fairlane,) = words_of("ENTRYPOINT")
    program = image / "bin" / fairlane
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-run-") as made,
        proxy_before(empty_database) as proxy,
    ):
        folder = Path(made)
        folder.chmod(0o755)  # not its user's: nothing can be written
        jobs = folder / "jobs.yaml"
        jobs.write_text(JOBS)
        here = {
            "FAIRLANE_DATABASE_URL": proxy.url,
            "HOME": "/nonexistent",
            "PATH": f"{image / 'bin'}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "FAIRLANE_METRICS_PORT": "0",
        }

        def call(*words: str) -> str:
            done = subprocess.run(
                [*AS_USER, program, *words],
                cwd=folder,
                env={**environment(), **here},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert call("--version").startswith("fairlane ")
        services = compose()["services"]
        call(*services["migrate"]["command"])
        call("tenants", "create", "acme")
        call("definitions", "apply", "jobs.yaml")
        server = [*words_of("CMD")[:-1], "0"]
        worker = services["worker"]["command"]
        with (
            running(program, folder, *server, says="listening on", prefix=AS_USER, **here) as said,
            running(program, folder, *worker, says="serves", prefix=AS_USER, **here),
        ):
            found = re.search(r"listening on (\S+)", said)
            assert found is not None
            healthy = [str(image / "bin" / "python"), *words_of("HEALTHCHECK")[1:]]
            url = found[1].replace("0.0.0.0", "127.0.0.1")
            for address, status in ((f"{url}/healthz", 0), (f"{url}/nowhere", 1)):
                asked = subprocess.run(
                    healthy, env={**here, "HEALTH_URL": address}, capture_output=True
                )
                assert asked.returncode == status, asked.stderr
            call("enqueue", "list", "--tenant", "acme", "--wait")
