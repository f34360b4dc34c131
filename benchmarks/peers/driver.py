"""One scenario with one system: prints what it measured as one line of JSON.

python -m benchmarks.peers.driver SYSTEM SCENARIO PLACE TERMS
"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

import uvloop
from benchmarks.peers.side import Place, side_of
from benchmarks.peers.stage import Stage, Terms


async def main(system: str, scenario: str, place: Place, terms: Terms) -> None:
    module = importlib.import_module(f"benchmarks.peers.scenarios.{scenario.replace('-', '_')}")
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder:
        stage = Stage(system, side_of(system), place, Path(folder), terms)
        figures = await module.measure(stage)
    print(json.dumps(figures), flush=True)
    # At once: what a peer does at its end is not measured, and must not hold up the others.
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(
        main(
            sys.argv[1],
            sys.argv[2],
            Place(**json.loads(sys.argv[3])),
            Terms(**json.loads(sys.argv[4])),
        )
    )
