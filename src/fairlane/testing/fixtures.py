"""What a conftest.py imports; pytest is asked for here and nowhere else."""

from collections.abc import Iterator

import pytest

from fairlane.testing.database import Database, fresh_database


@pytest.fixture
def fairlane_database() -> Iterator[Database]:
    """A fresh database for each test."""
    with fresh_database() as database:
        yield database
