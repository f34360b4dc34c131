"""The examples, each with a fresh database for all the tests of its page."""

from collections.abc import Callable, Iterator

import pytest

from acceptance.stage import Example
from support.clock import Clock
from support.cluster import Cluster


@pytest.fixture(scope="module")
def opened(
    cluster: Cluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Example]]:
    made: list[Example] = []
    with cluster.fresh(template) as url:

        def open_example(name: str) -> Example:
            made.append(Example(name, url, tmp_path_factory.mktemp(name)))
            return made[-1]

        yield open_example
        for each in made:
            each.close()


@pytest.fixture
def clock(example: Example) -> Iterator[Clock]:
    """The time as the example's database tells it."""
    with Clock.of(example.url) as clock:
        yield clock


@pytest.fixture(autouse=True)
def no_worker_outlives_its_test(example: Example) -> Iterator[None]:
    yield
    example.end_workers()
