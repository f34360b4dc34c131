"""Redactor: takes the secrets of one definition's jobs out of what is stored and shown."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairlane.errors import Fault
from fairlane.redact import names, paths, shapes
from fairlane.redact.known import KNOWN, Known
from fairlane.redact.marker import MARKER
from fairlane.redact.mask import Mask

if TYPE_CHECKING:
    from fairlane.definitions.definition import Definition


class Redactor:
    """By schema and path, by name and shape, by known value. It never changes what it is given."""

    def __init__(
        self,
        mask: Mask = Mask(()),  # noqa: B008
        *,
        result_mask: Mask = Mask(()),  # noqa: B008
        secrets: Iterable[str] | Known = KNOWN,
    ) -> None:
        self.mask = mask
        self.result_mask = result_mask
        self._known = secrets if isinstance(secrets, Known) else Known(secrets)

    @classmethod
    def of(cls, definition: "Definition", secrets: Iterable[str] | Known = KNOWN) -> "Redactor":
        mask, result_mask = _masks_of(definition)
        return cls(mask, result_mask=result_mask, secrets=secrets)

    def for_payload(self, payload: dict[str, Any] | None) -> "Redactor":
        """One that also knows the secrets in this payload, wherever they turn up again."""
        return _OfPayload(self, payload or {})

    def payload(self, payload: Any) -> Any:
        return self.value(self.mask.hide(payload))

    def result(self, result: Any) -> Any:
        """A result is what somebody asked for, so looks alone take nothing from it: a signed URL
        must stay one. What its schema marks and what is known to be secret goes."""
        return _mapped(self.result_mask.hide(result), self._hide_known)

    def value(self, value: Any) -> Any:
        """Any JSON: progress, the fields of a log line, the data of an event."""
        return _mapped(value, self.text, by_name=True)

    def error(self, error: dict[str, Any]) -> dict[str, Any]:
        """An error as it is stored with an attempt: message, traceback and all."""
        found: dict[str, Any] = self.value(error)
        return found

    def faults(self, faults: Iterable[Fault]) -> list[Fault]:
        """What is wrong with a payload, without quoting the secret that is wrong."""
        return [
            Fault(fault.pointer, SECRET_FAULT)
            if self.mask.covers(fault.pointer)
            else Fault(fault.pointer, self.text(fault.message))
            for fault in faults
        ]

    def text(self, text: str) -> str:
        return shapes.hide(self._hide_known(text))

    def unfinished(self, text: str) -> str:
        """A text that is still being written, without what may be half of a known secret at its
        end: nobody could recognise it there."""
        return text[: len(text) - self._begun(text)]

    def _hide_known(self, text: str) -> str:
        return self._known.hide(text)

    def _begun(self, text: str) -> int:
        return self._known.begun(text)


# Who holds a definition asks for its redactor with every job: schemas are looked through once. The
# definition is kept beside its masks so that nothing else can come to stand at its address.
_masks: dict[int, tuple["Definition", Mask, Mask]] = {}
_MOST_MASKS = 1_000


def _masks_of(definition: "Definition") -> tuple[Mask, Mask]:
    found = _masks.get(id(definition))
    if found is None:
        if len(_masks) >= _MOST_MASKS:
            _masks.clear()
        found = _masks[id(definition)] = (
            definition,
            Mask((*definition.redact, *paths.of_schema(definition.arg_schema))),
            Mask(paths.of_schema(definition.result_schema)),
        )
    return found[1:]


SECRET_FAULT = "is not as the schema says; it is a secret and not shown"  # noqa: S105


class _OfPayload(Redactor):
    def __init__(self, general: Redactor, payload: dict[str, Any]) -> None:
        super().__init__(general.mask, result_mask=general.result_mask, secrets=general._known)
        self._payload = payload

    # Most jobs never say a word: their payload is looked through when one does.
    @cached_property
    def own(self) -> Known:
        return Known(secrets_in(self._payload, self.mask))

    def _hide_known(self, text: str) -> str:
        return self._known.hide(self.own.hide(text))

    def _begun(self, text: str) -> int:
        return max(self._known.begun(text), self.own.begun(text))


def secrets_in(payload: dict[str, Any], mask: Mask) -> Iterator[str]:
    """The texts that a payload has at its secret places, and under names of secrets."""
    for value in mask.found(payload):
        yield from _texts(value)
    for value in _named(payload):
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _named(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, item in value.items():
            if names.is_secret(name):
                yield item
            else:
                yield from _named(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named(item)


def _mapped(value: Any, text: Callable[[str], str], by_name: bool = False) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {
            text(name) if isinstance(name, str) else name: MARKER
            if by_name and _is_named_secret(name, item)
            else _mapped(item, text, by_name)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_mapped(item, text, by_name) for item in value]
    return value


def _is_named_secret(name: Any, value: Any) -> bool:
    # Whether there is a secret is none: null, true and false are shown.
    return isinstance(name, str) and not isinstance(value, bool | None) and names.is_secret(name)
