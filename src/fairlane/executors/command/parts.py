"""Reads an argv template: its typed parts, and the placeholders in them."""

from collections.abc import Mapping
from typing import Any

from fairlane.errors import Fault
from fairlane.executors.command import argv as made
from fairlane.executors.command.argv import Argument, Argv, Part
from fairlane.executors.command.known import fault_of_items, fault_of_switch, fault_of_value
from fairlane.executors.command.shells import misplaced
from fairlane.executors.template import Name, Template, TemplateInvalid
from fairlane.executors.values import ROOTS, misnamed

MOST_PARTS = 256
LONGEST = 16_384  # characters of one argument's template

FORMS = '{"value"}, {"optional"}, {"when", "argv"} or {"each", "argv"}'


class PartsReader:
    def __init__(self, arg_schema: Mapping[str, Any], faults: list[Fault]) -> None:
        self._schema = arg_schema
        self._faults = faults
        # Each argument's pointer and its template; None where it could not be read.
        self._seen: list[tuple[str, Template | None]] = []

    def argv(self, given: Any, here: str) -> Argv | None:
        if not isinstance(given, list) or not given:
            self._fault(here, 'must be a list like ["program", "--path", "{payload.path}"]')
            return None
        if len(given) > MOST_PARTS:
            self._fault(here, f"has {len(given)} parts; the limit is {MOST_PARTS}")
            return None
        program = self._program(given[0], f"{here}/0")
        parts = [self._part(part, f"{here}/{n}") for n, part in enumerate(given[1:], 1)]
        for place, why in misplaced([template for _, template in self._seen]):
            self._fault(self._seen[place][0], why)
        return Argv(program, tuple(part for part in parts if part is not None))

    def _fault(self, pointer: str, message: str) -> None:
        self._faults.append(Fault(pointer, message))

    def _program(self, given: Any, here: str) -> str:
        template = self._template(given, here, ROOTS)
        self._seen.append((here, template))
        if template is None or template.names:
            return ""  # told where all that name a program are looked at
        if not template.before or template.before.startswith("-"):
            self._fault(here, "must be the name of a program or its absolute path")
        elif "/" in template.before and not template.before.startswith("/"):
            self._fault(here, "must be a name that PATH finds, or an absolute path")
        return template.before

    def _part(self, given: Any, here: str) -> Part | None:
        if isinstance(given, int | float) and not isinstance(given, bool):
            given = str(given)  # a number in a file is meant as its digits
        if isinstance(given, str):
            argument = self._argument(given, here, ROOTS)
            return made.One(argument) if argument else None
        if not isinstance(given, Mapping):
            self._fault(here, f"must be a text, {FORMS}")
            return None
        match set(given):
            case keys if "value" in keys and keys <= {"value", "allow_leading"}:
                argument = self._argument(given, here, ROOTS)
                return made.One(argument) if argument else None
            case keys if keys == {"optional"}:
                return self._optional(given["optional"], f"{here}/optional")
            case keys if keys == {"when", "argv"}:
                return self._when(given, here)
            case keys if "each" in keys and keys <= {"each", "argv"}:
                return self._each(given, here)
            case _:
                self._fault(here, f"must be a text, {FORMS}")
                return None

    def _optional(self, given: Any, here: str) -> Part | None:
        if isinstance(given, str):
            given = [given]
        arguments = self._arguments(given, here, ROOTS)
        if arguments and not any(argument.template.names for argument in arguments):
            self._fault(here, "names no value, so it would never be left out")
        return made.Optional(arguments)

    def _when(self, given: Mapping[str, Any], here: str) -> Part | None:
        name = self._only_name(given["when"], f"{here}/when")
        arguments = self._arguments(given["argv"], f"{here}/argv", ROOTS)
        if name is None:
            return None
        if why := fault_of_switch(name, self._schema):
            self._fault(f"{here}/when", why)
        return made.When(name, arguments)

    def _each(self, given: Mapping[str, Any], here: str) -> Part | None:
        name = self._only_name(given["each"], f"{here}/each")
        roots = ROOTS | {"item"}
        inner = given.get("argv", ["{item}"])
        arguments = self._arguments(inner, f"{here}/argv", roots)
        if arguments and not any(("item",) in argument.template.names for argument in arguments):
            self._fault(f"{here}/argv", "nowhere has {item}")
        if name is None:
            return None
        if why := fault_of_items(name, self._schema):
            self._fault(f"{here}/each", why)
        return made.Each(name, arguments)

    def _only_name(self, given: Any, here: str) -> Name | None:
        """A template that is one placeholder of the payload and nothing else."""
        template = self._template(given, here, frozenset({"payload"}))
        if template is None:
            return None
        if len(template.parts) != 1 or not template.names or misnamed(template.names[0]):
            self._fault(here, 'must be one placeholder like "{payload.tags}" and nothing else')
            return None
        return template.names[0]

    def _arguments(self, given: Any, here: str, roots: frozenset[str]) -> tuple[Argument, ...]:
        if not isinstance(given, list) or not given:
            self._fault(here, "must be a list of arguments")
            return ()
        found = [self._argument(one, f"{here}/{place}", roots) for place, one in enumerate(given)]
        return tuple(argument for argument in found if argument is not None)

    def _argument(self, given: Any, here: str, roots: frozenset[str]) -> Argument | None:
        allowed: frozenset[str] = frozenset()
        if isinstance(given, Mapping):
            if not {"value"} <= set(given) <= {"value", "allow_leading"}:
                self._fault(here, 'must be a text, or {"value", "allow_leading"}')
                return None
            allowed = self._allowed(given.get("allow_leading", []), f"{here}/allow_leading")
            given, here = given["value"], f"{here}/value"
        template = self._template(given, here, roots)
        self._seen.append((here, template))
        if template is None:
            return None
        for name in template.names:
            why = None if name == ("item",) else misnamed(name)
            if why is None and name[0] == "item" and len(name) > 1:
                why = "{item} has no members"
            elif why is None and name[0] == "payload":
                why = fault_of_value(name, self._schema)
            if why is not None:
                self._fault(here, why)
        before = template.before
        if template.names and before and not before.strip("-") and "-" not in allowed:
            self._fault(here, f'behind "{before}" the value would choose the option; write it out')
        return Argument(template, allowed)

    def _allowed(self, given: Any, here: str) -> frozenset[str]:
        if not isinstance(given, list) or any(one not in ("-", "@") for one in given):
            self._fault(here, 'must be a list of "-" and "@"')
            return frozenset()
        return frozenset(given)

    def _template(self, given: Any, here: str, roots: frozenset[str]) -> Template | None:
        if not isinstance(given, str):
            self._fault(here, "must be a text")
        elif "\x00" in given or not _is_text(given):
            self._fault(here, "has a NUL character, or half a character")
        elif len(given) > LONGEST:
            self._fault(here, f"has {len(given)} characters; the limit is {LONGEST}")
        else:
            try:
                return Template(given, roots)
            except TemplateInvalid as error:
                self._fault(here, _told(error, given))
        return None


def _told(error: TemplateInvalid, given: str) -> str:
    if "{secret." in given:
        return "a secret may not stand in an argument, which every user of the machine can read"
    return told_of_braces(error)


def told_of_braces(error: TemplateInvalid) -> str:
    """Most who write a brace that names no value mean a plain one."""
    told = str(error)
    return told if '"{{"' in told or '"}}"' in told else f'{told}; write "{{{{" for a plain brace'


def _is_text(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True
