"""Arguments from a template of typed parts. A value stays within its argument, whatever it holds.

An argv is a list of parts; each says how many arguments it can become:

    "--path={payload.p}"                                  exactly one
    {"value": "{payload.n}", "allow_leading": ["-"]}      exactly one, which may begin with "-"
    {"optional": ["--path", "{payload.p}"]}               all of these, or none
    {"when": "{payload.dry}", "argv": ["--dry-run"]}      all of these if the value is true
    {"each": "{payload.tags}", "argv": ["--tag", "{item}"]}   all of these for every item
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.core.json import pointer_to
from fairlane.errors import Fault, PayloadInvalid
from fairlane.executors.template import Name, Template, ValueMissing, value_of

# Well under what Linux takes: 128 KiB an argument, a quarter of the stack for all of them.
LONGEST = 65_536  # bytes of an argument
LONGEST_ALL = 524_288  # bytes of all
MOST = 4_096  # arguments

Values = Mapping[str, Any]


class ArgumentsRefused(PayloadInvalid):
    """A payload makes arguments that may not be."""


class Refused(Exception):
    """One argument may not be as this value makes it."""

    def __init__(self, name: Name, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"{'.'.join(name)} {why}")


@dataclass(frozen=True)
class Argument:
    """One argument, always and exactly."""

    template: Template
    allowed: frozenset[str] = frozenset()  # of "-" and "@", what a value may begin it with

    def render(self, values: Values) -> str:
        try:
            text = self.template.render(values)
        except ValueMissing as error:
            raise Refused(error.name, error.why) from None
        names = self.template.names
        if names:
            self._check(text, names[0])
        return text

    def _check(self, text: str, first: Name) -> None:
        """What the template says itself is its author's; what a value adds is looked at."""
        before = self.template.before
        begins = text[len(before) : len(before) + 1]
        if begins == "-" and not before and "-" not in self.allowed:
            raise Refused(first, 'may not begin an argument with "-": it would be an option')
        if begins == "@" and "@" not in self.allowed and names_a_file(before):
            raise Refused(first, 'may not begin with "@" here: many programs read a file then')
        if "\x00" in text:
            raise Refused(first, "has a NUL character; an argument cannot")
        try:
            size = len(text) if text.isascii() else len(text.encode())
        except UnicodeEncodeError:
            raise Refused(first, "has half a character (a lone surrogate)") from None
        if size > LONGEST:
            raise Refused(
                first,
                f"makes an argument of {size} bytes; the limit is {LONGEST}: send a reference",
            )


def names_a_file(before: str) -> bool:
    """Whether `@` right behind this text may mean a file: `@f`, `-d@f`, `--data=@f`, `key=@f`."""
    return not before or before.startswith("-") or before.endswith("=")


@dataclass(frozen=True)
class One:
    argument: Argument

    def render(self, values: Values) -> Iterator[str]:
        yield self.argument.render(values)


@dataclass(frozen=True)
class Optional:
    """Left out together when a value that they name is absent or null."""

    arguments: tuple[Argument, ...]

    def render(self, values: Values) -> Iterator[str]:
        names = [name for argument in self.arguments for name in argument.template.names]
        if all(value_of(name, values) is not None for name in names):
            for argument in self.arguments:
                yield argument.render(values)


@dataclass(frozen=True)
class When:
    """There when a value is true; absent, null and false leave them out."""

    name: Name
    arguments: tuple[Argument, ...]

    def render(self, values: Values) -> Iterator[str]:
        value = value_of(self.name, values)
        if value is not None and not isinstance(value, bool):
            raise Refused(self.name, "is not true or false")
        if value:
            for argument in self.arguments:
                yield argument.render(values)


@dataclass(frozen=True)
class Each:
    """Once for every item of an array; absent and null count as empty."""

    name: Name
    arguments: tuple[Argument, ...]

    def render(self, values: Values) -> Iterator[str]:
        items = value_of(self.name, values)
        if items is None:
            return
        if not isinstance(items, list):
            raise Refused(self.name, "is not an array")
        for index, item in enumerate(items):
            for argument in self.arguments:
                try:
                    yield argument.render({**values, "item": item})
                except Refused as error:
                    if error.name != ("item",):
                        raise
                    raise Refused((*self.name, str(index)), error.why) from None


Part = One | Optional | When | Each


@dataclass(frozen=True)
class Argv:
    """The program and its arguments."""

    program: str  # a name for PATH, or an absolute path
    parts: tuple[Part, ...]

    def build(self, values: Values) -> list[str]:
        """The arguments for these values; refused with every fault."""
        argv = [self.program]
        faults: list[Fault] = []
        for part in self.parts:
            try:
                argv += part.render(values)
            except Refused as error:
                faults.append(Fault(_pointer(error.name), str(error)))
        if not faults:
            faults = _too_much(argv)
        if faults:
            raise ArgumentsRefused(
                f"the command cannot be run: {'; '.join(map(str, faults))}", faults
            )
        return argv


def _pointer(name: Name) -> str:
    """Where in the payload the value stands; other values are nobody's to mend."""
    pointer = ""
    if name[0] == "payload":
        for step in name[1:]:
            pointer = pointer_to(pointer, step)
    return pointer


def _too_much(argv: Sequence[str]) -> list[Fault]:
    if len(argv) > MOST:
        return [Fault("", f"it makes {len(argv)} arguments; the limit is {MOST}")]
    size = sum(len(argument.encode()) + 1 for argument in argv)
    if size > LONGEST_ALL:
        return [Fault("", f"its arguments have {size} bytes; the limit is {LONGEST_ALL}")]
    return []
