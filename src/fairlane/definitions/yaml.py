"""YAML as data: text, numbers, true, false, null, lists and objects, with the line of each.

What else YAML can do is refused: tags, dates, keys that are not text, a key that stands twice,
several documents, aliases that grow without end.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from fairlane.core.json import pointer_to
from fairlane.errors import DefinitionInvalid, Fault

DEPTH = 60
VALUES = 100_000  # aliases counted as often as they are used

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


def read(text: str) -> tuple[Any, Mapping[str, int]]:
    """The one document, and the line of each of its values by JSON pointer."""
    try:
        _refuse_early(text)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if root is None:
        return None, {}
    reader = _Reader()
    value = reader.value(root, "")
    if reader.faults:
        raise DefinitionInvalid("the YAML is refused", reader.faults)
    return value, reader.lines


def _refuse_early(text: str) -> None:
    """Before a tree is made of it: it is made by recursion."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        line = event.start_mark.line + 1
        if depth > DEPTH:
            raise ValueError(f"line {line}: it is nested more than {DEPTH} deep")
        if documents > 1:
            raise ValueError(f"line {line}: a second document begins; a file is one")


class _Reader:
    """Turns the tree into values, and takes down what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.lines: dict[str, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()
        self._count = 0

    def value(self, node: yaml.Node, pointer: str) -> Any:
        self._count += 1
        if self._count > VALUES:
            raise ValueError("its aliases make more of it than a file may hold")
        self.lines[pointer] = node.start_mark.line + 1
        match node:
            case yaml.MappingNode() if node.tag == f"{_TAG}map":
                return self._object(node, pointer)
            case yaml.SequenceNode() if node.tag == f"{_TAG}seq":
                return [
                    self.value(each, f"{pointer}/{index}") for index, each in enumerate(node.value)
                ]
            case yaml.ScalarNode():
                return self._scalar(node, pointer)
            case _:
                return self._wrong(pointer, node, f"the tag {node.tag} is not read here")

    def _object(self, node: yaml.MappingNode, pointer: str) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged = self._merged(value, pointer) | merged
            elif key.tag != f"{_TAG}str":
                self._wrong(pointer, key, f"a name is text; put {_source(key)} in quotes")
            elif key.value in own:
                here = pointer_to(pointer, key.value)
                self._wrong(here, key, f'the name "{key.value}" stands twice')
            else:
                own[key.value] = self.value(value, pointer_to(pointer, key.value))
        return merged | own

    def _merged(self, node: yaml.Node, pointer: str) -> dict[str, Any]:
        """What `<<` brings in: an object, or a list of them, the first winning."""
        value = self.value(node, pointer)
        found: dict[str, Any] = {}
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                found = each | found
            else:
                self._wrong(pointer, node, "<< takes an object, or a list of them")
        return found

    def _scalar(self, node: yaml.ScalarNode, pointer: str) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind not in ("str", "int", "float", "bool", "null"):
            return self._wrong(pointer, node, f"{_source(node)} is a {kind}; put it in quotes")
        try:
            return self._scalars.construct_object(node)
        except ValueError:
            return self._wrong(pointer, node, f"{_source(node)} is no {kind}")

    def _wrong(self, pointer: str, node: yaml.Node, why: str) -> None:
        self.faults.append(Fault(pointer, f"line {node.start_mark.line + 1}: {why}"))


def _source(node: yaml.Node) -> str:
    return str(node.value)[:60] if isinstance(node, yaml.ScalarNode) else "it"
