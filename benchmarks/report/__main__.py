"""From results to docs/benchmarks.md and its picture.

    make bench-report ARGS="build/benchmarks/20260301-120000.jsonl ..."

Of several runs, each bar is taken from the last that measured it, and each scenario from the one
that had most systems in it, or the last of those. Without any named, all of build/benchmarks are
taken in the order of their time, but for quick runs.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.report.lines import read
from benchmarks.report.page import page
from benchmarks.report.panels import panels
from benchmarks.report.svg import picture

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--to", type=Path, default=ROOT / "docs", help="the folder of the page")
    options = parser.parse_args()
    files = options.files or _all()
    if not files:
        parser.error("there are no results; measure first: make bench-bars, make bench-peers")
    results = read(files)
    (options.to / "pictures").mkdir(parents=True, exist_ok=True)
    (options.to / "benchmarks.md").write_text(page(results))
    (options.to / "pictures" / "benchmarks.svg").write_text(picture(panels(results)))
    print(f"{options.to / 'benchmarks.md'}, from {', '.join(path.name for path in files)}")
    return 0


def _all() -> list[Path]:
    found = sorted((ROOT / "build" / "benchmarks").glob("*.jsonl"))
    return [path for path in found if not read([path]).quick]


if __name__ == "__main__":
    sys.exit(main())
