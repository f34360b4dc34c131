"""What `fairlane` offers by name."""

import subprocess
import sys

import pytest

import fairlane


@pytest.mark.parametrize("name", fairlane.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fairlane, name) is not None
    assert name in dir(fairlane)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Fairlain'"):
        _ = fairlane.Fairlain  # type: ignore[attr-defined]


def test_the_package_alone_brings_no_driver() -> None:
    program = "import sys, fairlane; print({'asyncpg', 'msgspec'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout == b"set()\n"
