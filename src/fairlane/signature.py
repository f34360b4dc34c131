"""The payload of a task, as the type hints of its function tell it."""

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from types import GenericAlias, SimpleNamespace
from typing import Any, Optional, get_args, get_type_hints

import msgspec

from fairlane import schemas
from fairlane.context import JobContext
from fairlane.core import json
from fairlane.errors import DefinitionInvalid, FairlaneError, Fault, PayloadInvalid
from fairlane.schemas.sets import in_order

# What `task.enqueue` takes beside the task's own arguments.
OPTIONS = (
    "tenant",
    "connection",
    "priority",
    "scheduled_for",
    "dedupe_key",
    "concurrency_key",
    "correlation_id",
    "max_attempts",
    "id",
    "reuse",
)

# Two types of one name get a longer name each in the schema, so this one may be called as it likes.
MODULE = "fairlane.signature"

# A timedelta as msgspec writes and reads it. JSON Schema's own format has no sign and no fractions.
DURATION = r"^[-+]?P([0-9]+(\.[0-9]+)?[WD])*(T([0-9]+(\.[0-9]+)?[HMS])+)?$"


class TaskInvalid(FairlaneError):
    """A function cannot be a task as it is written."""


class ArgumentsInvalid(PayloadInvalid):
    """Arguments do not fit the task; `faults` has every one that was found."""

    def __init__(self, key: str, faults: list[Fault]) -> None:
        listed = "; ".join(map(str, faults))
        super().__init__(f'the payload of "{key}" does not fit: {listed}', faults)


class Signature:
    """What a function takes: validates arguments, makes JSON of them, and arguments of JSON."""

    def __init__(self, key: str, function: Callable[..., Any]) -> None:
        self.key = key
        reader = _Reader(key, function)
        self.takes_context = reader.takes_context
        self.schema = reader.schema()
        try:
            schemas.compile(self.schema, payload=True)
        except DefinitionInvalid as error:
            raise TaskInvalid(f'task "{key}": {error}') from None
        self._hints = reader.hints
        self._extra = reader.extra
        self._rest = GenericAlias(dict, (str, reader.extra))  # what goes into `**`
        self._takes_all = not reader.hints and reader.extra is Any  # `**payload`, and no more
        self._reserved = reader.context_name
        self._defaults = reader.defaults
        self._struct = reader.struct()

    def payload(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as a JSON object, with every default in it."""
        try:
            return self._payload(arguments)
        except RecursionError:
            # What came by SQL may be deeper than Python can follow; `json.check` is not asked then.
            fault = Fault("", f"is nested more than {json.DEPTH} deep")
            raise ArgumentsInvalid(self.key, [fault]) from None

    def _payload(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        faults: list[Fault] = []
        written: dict[str, Any] = {}
        for name, value in arguments.items():
            hint = self._hints.get(name, self._extra)
            try:
                # A value that no hint speaks of must be JSON already: nothing could bring it back.
                written[name] = value if hint in (None, Any) else _written(value)
            except (TypeError, ValueError) as error:
                faults.append(Fault(json.pointer_to("", name), _gist(error)))
        typed = self._typed(written, faults)
        # Written once more, from the typed values: now with the defaults, also those further in.
        payload = {
            name: value if self._hints.get(name, self._extra) is Any else _written(value)
            for name, value in typed.items()
        }
        json.check(payload, f'the payload of "{self.key}"')
        plain: dict[str, Any] = json.loads(json.dumps(payload))
        return plain

    def arguments(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """What to call the function with, for a payload that was stored as JSON."""
        if self._takes_all and self._reserved not in payload:
            return dict(payload)
        return self._typed(payload, [])

    def _typed(self, written: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
        if not faults and self._reserved not in written:
            # The common case, in one pass; a fault is worth a slower look for all of them.
            try:
                found = msgspec.convert(written, self._struct, str_keys=True)
                typed = {name: getattr(found, name) for name in self._hints}
                return typed if self._extra is None else typed | self._further(written)
            except msgspec.ValidationError:
                pass
        return self._typed_one_by_one(written, faults)

    def _further(self, written: Mapping[str, Any]) -> dict[str, Any]:
        further = {name: written[name] for name in written if name not in self._hints}
        if self._extra is Any:
            return further
        typed: dict[str, Any] = msgspec.convert(further, self._rest, str_keys=True)
        return typed

    def _typed_one_by_one(self, written: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
        known = {fault.pointer for fault in faults}
        typed: dict[str, Any] = {}
        for name in [*self._hints, *(each for each in written if each not in self._hints)]:
            pointer = json.pointer_to("", name)
            hint = self._hints.get(name, self._extra)
            if pointer in known:
                continue
            if hint is None or name == self._reserved:
                faults.append(Fault(pointer, "the task has no such parameter"))
            elif name in written:
                try:
                    typed[name] = msgspec.convert(written[name], hint, str_keys=True)
                except msgspec.ValidationError as error:
                    faults.append(_fault(pointer, error))
            elif name in self._defaults:
                typed[name] = copy.deepcopy(self._defaults[name])
            else:
                faults.append(Fault(pointer, "is missing"))
        if faults:
            raise ArgumentsInvalid(self.key, faults)
        return typed


class _Reader:
    """Reads a function once, and refuses what cannot become a payload."""

    def __init__(self, key: str, function: Callable[..., Any]) -> None:
        self.key = key
        self.function = inspect.unwrap(function)
        self.context_name: str | None = None
        self.hints: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.extra: Any = None
        parameters = list(inspect.signature(function).parameters.values())
        if parameters and self._is_context(parameters[0]):
            self.context_name = parameters.pop(0).name
        for parameter in parameters:
            self._read(parameter)

    @property
    def takes_context(self) -> bool:
        return self.context_name is not None

    def struct(self) -> type[msgspec.Struct]:
        fields: list[Any] = []
        for name, hint in self.hints.items():
            if name in self.defaults:
                make = _copies(self.defaults[name])
                fields.append((name, hint, msgspec.field(default_factory=make)))
            else:
                fields.append((name, hint))
        closed = self.extra is None
        return msgspec.defstruct(
            "Payload", fields, kw_only=True, forbid_unknown_fields=closed, module=MODULE
        )

    def schema(self) -> dict[str, Any]:
        (root, extra), types = msgspec.json.schema_components([self.struct(), self.extra or Any])
        found: dict[str, Any] = types.pop(root["$ref"].removeprefix("#/$defs/"))
        for name, default in self.defaults.items():
            found["properties"][name]["default"] = _written(default)
        schema: dict[str, Any] = _with_durations(
            {
                "type": "object",
                "properties": found["properties"],
                "required": found["required"],
                "additionalProperties": False if self.extra is None else extra or True,
                **({"$defs": types} if types else {}),
            }
        )
        return schema

    def _is_context(self, parameter: inspect.Parameter) -> bool:
        hint = self._hint(parameter)
        if _mentions_context(hint):
            return True
        if parameter.name != "ctx":
            return False
        if hint is not Any:
            raise self._refusal(
                parameter, "is the job's context: annotate it JobContext, or rename it"
            )
        return True

    def _read(self, parameter: inspect.Parameter) -> None:
        name, hint = parameter.name, self._hint(parameter)
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise self._refusal(parameter, "takes any number of values; arguments go by name")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise self._refusal(parameter, 'is positional only; arguments go by name: drop the "/"')
        if name in OPTIONS:
            raise self._refusal(
                parameter, f"has the name of an option of enqueue ({', '.join(OPTIONS)}); rename it"
            )
        if name in ("self", "cls"):
            raise self._refusal(parameter, "belongs to a method; a task is a function of its own")
        if _mentions_context(hint):
            raise self._refusal(parameter, "is a JobContext, which must be the first parameter")
        self._refuse_unless_json(parameter, hint)
        if parameter.kind is parameter.VAR_KEYWORD:
            self.extra = hint
            return
        if parameter.default is not parameter.empty:
            hint = self._with_default(parameter, hint)
        self.hints[name] = hint

    def _hint(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is parameter.empty:
            return Any
        one = SimpleNamespace(__annotations__={"hint": parameter.annotation})
        try:
            return get_type_hints(one, self.function.__globals__, include_extras=True)["hint"]
        except Exception as error:
            raise self._refusal(
                parameter,
                f"has a type hint that cannot be read: {_gist(error)}; "
                "its types must be importable at the top of the module",
            ) from None

    def _refuse_unless_json(self, parameter: inspect.Parameter, hint: Any) -> None:
        try:
            msgspec.json.schema(hint)
        except Exception as error:
            raise self._refusal(
                parameter,
                f"has a type hint that JSON cannot carry: {_gist(error)}; use the types of JSON, "
                "dates, UUID, Decimal, Enum, dataclasses or msgspec.Struct",
            ) from None

    def _with_default(self, parameter: inspect.Parameter, hint: Any) -> Any:
        default = parameter.default
        try:
            written = _written(default)
            json.check(written, "it")
            if default is None and not _fits(None, hint):
                hint = Optional[hint]  # noqa: UP045 - a hint may be anything, also a string
            msgspec.convert(written, hint, str_keys=True)
        except (TypeError, ValueError, PayloadInvalid) as error:
            raise self._refusal(
                parameter, f"has a default that does not fit its type hint: {_gist(error)}"
            ) from None
        self.defaults[parameter.name] = default
        return hint

    def _refusal(self, parameter: inspect.Parameter, why: str) -> TaskInvalid:
        return TaskInvalid(f'task "{self.key}": the parameter "{parameter.name}" {why}')


def _with_durations(schema: Any) -> Any:
    """The schema, with the format of a timedelta as it is written here."""
    match schema:
        case {"type": "string", "format": "duration", **rest}:
            return {"type": "string", "pattern": DURATION, **rest}
        case dict():
            return {
                name: each if name in ("default", "const", "enum") else _with_durations(each)
                for name, each in schema.items()
            }
        case list():
            return [_with_durations(each) for each in schema]
        case _:
            return schema


def _written(value: Any) -> Any:
    return msgspec.to_builtins(in_order(value), str_keys=True, enc_hook=json.plain)


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _copies(value: Any) -> Callable[[], Any]:
    return lambda: copy.deepcopy(value)


def _mentions_context(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, JobContext):
        return True
    return any(_mentions_context(part) for part in get_args(hint))


def _fault(pointer: str, error: msgspec.ValidationError) -> Fault:
    """msgspec says where in its own way: Expected `int`, got `str` - at `$.items[2].name`."""
    message, _, path = str(error).partition(" - at ")
    # It does not tell which member of a dict, and then the dict is as near as we get.
    inside = re.sub(r"^.*`\$|`$|\[\.\.\.\].*", "", path)
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", inside):
        pointer = json.pointer_to(pointer, name or index)
    return Fault(pointer, message)


def _gist(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2] or type(error).__name__
