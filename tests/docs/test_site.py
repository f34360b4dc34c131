"""The site: links of the repository become its own, and nothing is fetched from elsewhere."""

from pathlib import Path

import pytest
from docsite.links import for_site
from docsite.outside import fetched


@pytest.mark.parametrize(
    ("written", "page", "shown"),
    [
        ("[a](docs/api.md#limits)", ("README.md", "index.md"), "[a](api.md#limits)"),
        ("[a](../CHANGELOG.md)", ("docs/web.md", "web.md"), "[a](changelog.md)"),
        (
            "[a](../../benchmarks/README.md)",
            ("docs/concepts/fairness.md", "concepts/fairness.md"),
            "[a](../measuring.md)",
        ),
        ("![a](docs/pictures/a.png)", ("README.md", "index.md"), "![a](pictures/a.png)"),
        ("[the core](src/fairlane/sql)", ("README.md", "index.md"), "the core"),
        ("[a](https://x.example/y)", ("README.md", "index.md"), "[a](https://x.example/y)"),
        ("```\n[a](docs/api.md)\n```", ("README.md", "index.md"), "```\n[a](docs/api.md)\n```"),
    ],
)
def test_a_link_leads_to_the_same_page(written: str, page: tuple[str, str], shown: str) -> None:
    assert for_site(written, *page) == shown


def test_what_a_browser_would_fetch_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="https://x.example">fine</a><img src="pictures/a.png">'
        '<link rel="stylesheet" href="https://fonts.x.example/css">'
        '<script src="//cdn.x.example/a.js"></script>'
    )
    assert [place.split("//")[1] for place in fetched(tmp_path)] == [
        "fonts.x.example/css",
        "cdn.x.example/a.js",
    ]
