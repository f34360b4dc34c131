"""Triggers that code brings along: `@app.cron` and `@app.on`, above or below `@app.job`.

They are the code's: whoever registers the tasks brings them to what the code says, and takes away
what it says no longer. That a person has paused one stays so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fairlane.core.calls import Call
from fairlane.core.json import dumps
from fairlane.definitions.definition import Definition
from fairlane.scheduler.check import against, whole
from fairlane.signature import TaskInvalid
from fairlane.task import Task, path_of

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__fairlane_rules__"
_REGISTER = "select * from fairlane.register_triggers($1::text::jsonb, $2)"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One trigger, for some tenants or, of None, for the events of all."""

    tenants: tuple[str, ...] | None
    fields: Mapping[str, Any]
    label: str | None = None

    def named(self, task: "Task[..., Any]", number: int) -> "Rule":
        """With its label; a name by number stays when the times in the code change."""
        kind = "schedule" if "cron_expr" in self.fields else "event"
        label = self.label or f"{task.key}: {kind}{f' {number}' if number > 1 else ''}"
        return replace(self, label=label)

    def checked(self, task: "Task[..., Any]") -> dict[str, Any]:
        """The trigger of a task; refused where it can be told that it will never work."""
        template = self.fields.get("payload_template")
        if template is None and "event_name" in self.fields:
            # What the function needs is in the event under the same name.
            names = task.signature.schema.get("required", [])
            template = {n: "{{event}}" if n == "event" else f"{{{{event.{n}}}}}" for n in names}
        written = {
            **self.fields,
            "payload_template": template or {},
            "label": self.label,
            "definition_key": task.key,
            "version": task.version,
        }
        found, faults = whole(written)
        if not faults:
            schema = task.signature.schema
            faults = against(found, Definition(key=task.key, arg_schema=schema), "")
        if faults:
            told = "; ".join(map(str, faults))
            raise TaskInvalid(f'task "{task.key}": its trigger is refused: {told}')
        found.pop("is_enabled")
        return found


class Rules:
    """What an app knows of its triggers."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[Rule]] = {}
        self._loose: list[Callable[..., Any]] = []

    def decorate(self, rule: Rule) -> Callable[[F], F]:
        def decorate(what: F) -> F:
            if isinstance(what, Task):
                self.add(what, [rule])
            else:
                # `@app.job` comes above and finds it here.
                setattr(what, MARK, [rule, *getattr(what, MARK, [])])
                self._loose.append(what)
            return what

        return decorate

    def take(self, task: "Task[..., Any]") -> None:
        """What was said below `@app.job`."""
        self.add(task, getattr(task.function, MARK, []))
        self._loose = [each for each in self._loose if each is not task.function]

    def add(self, task: "Task[..., Any]", rules: Iterable[Rule]) -> None:
        mine = self._of.setdefault((task.key, task.version), [])
        for rule in rules:
            kinds = ["cron_expr" in each.fields for each in mine]
            named = rule.named(task, kinds.count("cron_expr" in rule.fields) + 1)
            named.checked(task)
            mine.append(named)

    def call(self, tasks: Mapping[tuple[str, str], "Task[..., Any]"]) -> Call:
        """Brings the database to what the code says of triggers."""
        if self._loose:
            raise TaskInvalid(
                f"{path_of(self._loose[0])} has a trigger and is no task; add @app.job to it"
            )
        items = [
            {"tenant": tenant, **rule.checked(tasks[name])}
            for name, rules in self._of.items()
            for rule in rules
            for tenant in (rule.tenants if rule.tenants is not None else (None,))
        ]
        return Call(_REGISTER, (dumps(items), sorted({key for key, _ in tasks})))


def tenants_of(tenant: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if tenant is None:
        return None
    return (tenant,) if isinstance(tenant, str) else tuple(tenant)
