"""The server of this run is the one that `fairlane.testing` finds, and an app to test with."""

import pytest

from fairlane import Fairlane
from support.cluster import Cluster


@pytest.fixture(autouse=True)
def _server(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_TEST_DATABASE_URL", cluster.url)
    # What an app would find if a test forgot to say which database it means.
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/production")


@pytest.fixture
def app() -> Fairlane:
    """As modules have it: made before any test, for a database that no test may touch."""
    return Fairlane()
