"""The code of docs/progress.md runs, and does what the page says."""

import re
from pathlib import Path
from typing import Any

from fairlane import testing

PAGE = Path(__file__).parents[2] / "docs" / "progress.md"


async def test_the_task_of_the_page_ends_as_the_page_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, str(PAGE), "exec"), names)
    task, editions = names["process"], ["__main", "v2.x", "DM-12345"]

    done = await testing.run(task, tenant="acme", editions=editions)
    assert (done.outcome, done.result) == ("succeeded", {"editions": 3})

    some = await testing.run(task, tenant="acme", editions=editions, broken=["DM-12345"])
    assert some.outcome == "succeeded_with_errors"
    assert some.errors == [{"name": "DM-12345", "error": "R2 timeout after 3 retries"}]

    none = await testing.run(task, tenant="acme", editions=editions, broken=editions)
    assert (none.outcome, none.error and none.error["type"]) == ("raised", "ItemsFailed")
