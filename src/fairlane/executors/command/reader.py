"""Reads `command` settings: what is wrong is noted with its pointer, and reading goes on."""

from collections.abc import Mapping
from typing import Any

from fairlane import secrets
from fairlane.core.json import pointer_to
from fairlane.errors import Fault
from fairlane.executors.command.codes import Codes
from fairlane.executors.command.environment import (
    PLAIN,
    Environment,
    Variable,
    fault_in_inherited,
    fault_in_name,
)
from fairlane.executors.command.known import fault_of_value
from fairlane.executors.command.limits import RANGES, Limits
from fairlane.executors.command.parts import PartsReader, told_of_braces
from fairlane.executors.template import Template, TemplateInvalid
from fairlane.executors.values import ROOTS_AND_SECRETS, misnamed

KNOWN = (
    "argv",
    "env",
    "inherit",
    "cwd",
    "stdin",
    "limits",
    "success_codes",
    "retry_codes",
    "final_codes",
)


class Reader:
    def __init__(self, settings: Any, arg_schema: Mapping[str, Any]) -> None:
        self.faults: list[Fault] = []
        self._settings: Mapping[str, Any] = settings if isinstance(settings, Mapping) else {}
        self._schema = arg_schema
        if not isinstance(settings, Mapping):
            self._fault("/command", "must be an object with at least argv")

    def read(self) -> dict[str, Any]:
        for key in self._settings:
            if key not in KNOWN:
                self._fault(pointer_to("/command", key), f"unknown; there are {', '.join(KNOWN)}")
        parts = PartsReader(self._schema, self.faults)
        return {
            "argv": parts.argv(self._settings.get("argv"), "/command/argv"),
            "environment": Environment(self._env(), self._inherit()),
            "cwd": self._cwd(),
            "stdin": self._stdin(),
            "limits": self._limits(),
            "codes": self._codes(),
        }

    def _fault(self, pointer: str, message: str) -> None:
        self.faults.append(Fault(pointer, message))

    def _env(self) -> dict[str, Variable]:
        found: dict[str, Variable] = {}
        given = self._settings.get("env") or {}
        if not isinstance(given, Mapping):
            self._fault("/command/env", "must be an object of names and values")
            return found
        for name, said in given.items():
            here = pointer_to("/command/env", name)
            if why := fault_in_name(name):
                self._fault(here, why)
            elif (variable := self._variable(name, said, here)) is not None:
                found[name] = variable
        return found

    def _variable(self, name: str, said: Any, here: str) -> Variable | None:
        optional = isinstance(said, Mapping) and set(said) == {"optional"}
        text = said["optional"] if optional else said
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = str(text)  # a number in a file is meant as its digits
        if not isinstance(text, str):
            self._fault(here, 'must be a text, or {"optional": "..."}')
            return None
        try:
            template = Template(text, ROOTS_AND_SECRETS)
        except TemplateInvalid as error:
            self._fault(here, told_of_braces(error))
            return None
        if "\x00" in text:
            self._fault(here, "has a NUL character")
        if template.names and name.upper() in PLAIN:
            self._fault(here, f"{name} takes no placeholder: it decides what runs")
        for part in template.names:
            self._check_name(part, here)
        return Variable(template, optional)

    def _check_name(self, name: tuple[str, ...], here: str) -> None:
        why = misnamed(name)
        if why is None and name[0] == "secret":
            why = secrets.fault_in(".".join(name[1:]))
        elif why is None and name[0] == "payload":
            why = fault_of_value(name, self._schema)
        if why is not None:
            self._fault(here, why)

    def _inherit(self) -> tuple[str, ...]:
        given = self._settings.get("inherit") or []
        if not isinstance(given, list):
            self._fault("/command/inherit", "must be a list of names")
            return ()
        for place, name in enumerate(given):
            if why := fault_in_inherited(name):
                self._fault(f"/command/inherit/{place}", why)
        return tuple(name for name in given if isinstance(name, str))

    def _cwd(self) -> Template | None:
        given, here = self._settings.get("cwd"), "/command/cwd"
        if given is None:
            return None
        if not isinstance(given, str) or not given.startswith("/") or "\x00" in given:
            self._fault(here, "must be an absolute path; leave it out for a private directory")
            return None
        try:
            template = Template(given, frozenset({"tenant", "definition", "version"}))
        except TemplateInvalid as error:
            self._fault(here, told_of_braces(error))
            return None
        for name in template.names:
            if why := misnamed(name):
                self._fault(here, why)
        return template

    def _stdin(self) -> str:
        given = self._settings.get("stdin", "none")
        if given not in ("none", "payload"):
            self._fault("/command/stdin", "must be none or payload")
            return "none"
        return str(given)

    def _limits(self) -> Limits:
        given = self._settings.get("limits") or {}
        if not isinstance(given, Mapping):
            self._fault("/command/limits", "must be an object")
            return Limits()
        found: dict[str, Any] = {}
        for name, value in given.items():
            here = pointer_to("/command/limits", name)
            if name not in RANGES:
                self._fault(here, f"unknown; there are {', '.join(RANGES)}")
                continue
            least, most, may_be_null = RANGES[name]
            if value is None and may_be_null:
                found[name] = None
            elif isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
                found[name] = value
            else:
                self._fault(here, f"must be a whole number from {least} to {most}")
        return Limits(**found)

    def _codes(self) -> Codes:
        success = self._code_list("success_codes")
        retry, final = self._code_list("retry_codes"), self._code_list("final_codes")
        if success is not None and not success:
            self._fault("/command/success_codes", "must have at least one code")
        codes = Codes(frozenset({0}) if success is None else success, retry, final or frozenset())
        for name, theirs, others in (
            ("retry_codes", codes.retry or frozenset(), codes.success),
            ("final_codes", codes.final, codes.success | (codes.retry or frozenset())),
        ):
            if both := sorted(theirs & others):
                told = ", ".join(map(str, both))
                self._fault(f"/command/{name}", f"{told} stands in another list as well")
        return codes

    def _code_list(self, name: str) -> frozenset[int] | None:
        given = self._settings.get(name)
        if given is None:
            return None
        if not isinstance(given, list) or not all(
            isinstance(code, int) and not isinstance(code, bool) and 0 <= code <= 255
            for code in given
        ):
            self._fault(f"/command/{name}", "must be a list of whole numbers from 0 to 255")
            return None
        return frozenset(given)
