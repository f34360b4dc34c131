"""The code of docs/tasks.md runs."""

import re
from pathlib import Path
from typing import Any

from fairlane import testing

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"


async def test_the_task_of_the_page_answers_as_the_page_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, str(PAGE), "exec"), names)
    task = names["import_files"]

    done = await testing.run(task, tenant="acme", folder="/open", limit=3)
    assert (done.outcome, done.result) == ("succeeded", {"files": 3})
    assert [line.message for line in done.logs] == ["imported"]
    assert (await testing.run(task, tenant="acme", folder="/closed")).outcome == "failed"
    assert (await testing.run(task, tenant="acme", folder="/busy")).outcome == "snoozed"
