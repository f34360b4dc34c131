"""The body of a call as a JSON template: `"{payload.n}"` alone keeps the value's own type."""

from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core.json import pointer_to
from fairlane.errors import Fault
from fairlane.executors.http import names
from fairlane.executors.template import Name, Template, TemplateInvalid, value_of
from fairlane.executors.values import ROOTS

Render = Callable[[Mapping[str, Any]], Any]


class BodyTemplate:
    """Read once; its keys are literal, its strings are templates."""

    def __init__(self, value: Any, pointer: str, arg_schema: Mapping[str, Any]) -> None:
        self.faults: list[Fault] = []
        self._schema = arg_schema
        self.render = self._read(value, pointer)

    def _read(self, value: Any, pointer: str) -> Render:
        match value:
            case dict():
                members = {
                    key: self._read(item, pointer_to(pointer, key)) for key, item in value.items()
                }
                return lambda values: {key: item(values) for key, item in members.items()}
            case list():
                items = [
                    self._read(item, pointer_to(pointer, index)) for index, item in enumerate(value)
                ]
                return lambda values: [item(values) for item in items]
            case str():
                return self._read_text(value, pointer)
            case _:
                return lambda values: value

    def _read_text(self, text: str, pointer: str) -> Render:
        try:
            template = Template(text, ROOTS)
        except TemplateInvalid as error:
            self.faults.append(Fault(pointer, str(error)))
            return lambda values: None
        if len(template.parts) == 1 and template.names:
            # Alone it may be of any type; what an optional field has not is null.
            alone = template.names[0]
            self._check([alone], pointer, single=False)
            return lambda values: value_of(alone, values)
        self._check(template.names, pointer, single=True)
        return template.render

    def _check(self, found: list[Name], pointer: str, *, single: bool) -> None:
        self.faults += [
            Fault(pointer, fault)
            for name in found
            if (fault := names.fault_in(name, self._schema, single=single))
        ]
