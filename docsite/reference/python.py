"""Python: the public names, with their signatures and docstrings."""

import inspect
import re
from types import ModuleType
from typing import Any

import fairlane
from docsite.reference.words import cell, code, table
from fairlane import errors, testing

OURS = ("fairlane", "docsite")


def page() -> str:
    lines = ["# Python", "", "What `fairlane.__all__` and `fairlane.testing.__all__` name; "
             "[what of it is stable](../stability.md).", "", "## `fairlane`"]  # fmt: skip
    for name in fairlane.__all__:
        if name != "errors":
            lines += _name(fairlane, name)
    lines += ["", "## `fairlane.testing`"]
    for name in testing.__all__:
        lines += _name(testing, name)
    lines += [
        "",
        "## Errors",
        "",
        "In `fairlane.errors`; each text says what, which, and what next.",
    ]
    lines += table(
        ("error", "SQLSTATE", "when"),
        (
            (code(name), code(kind.sqlstate or ""), cell(inspect.getdoc(kind) or ""))
            for name, kind in vars(errors).items()
            if inspect.isclass(kind) and issubclass(kind, errors.FairlaneError)
        ),
    )
    return "\n".join(lines)


def _name(module: ModuleType, name: str) -> list[str]:
    found = getattr(module, name)
    dotted = f"{module.__name__}.{name}"
    lines = ["", f"### `{name}`", "", _doc(found)]
    if inspect.isclass(found):
        lines += ["", "```python", f"{name}{_signature(found)}", "```", *_members(found)]
    elif callable(found):
        lines += ["", "```python", f"{dotted}{_signature(found)}", "```"]
    return lines


def _members(kind: type) -> list[str]:
    rows = []
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or not _is_ours(kind, name):
            continue
        if isinstance(member, property):
            rows.append((code(name), _doc(member)))
        elif callable(getattr(kind, name)):
            word = "await " if inspect.iscoroutinefunction(getattr(kind, name)) else ""
            rows.append((code(f"{word}{name}{_signature(getattr(kind, name))}"), _doc(member)))
    fields = [
        (code(f"{name}: {_short(hint)}"), "")
        for name, hint in getattr(kind, "__annotations__", {}).items()
        if not name.startswith("_")
    ]
    every = [*fields, *((row, cell(about)) for row, about in rows)]
    return table(("member", ""), every) if every else []


def _is_ours(kind: type, name: str) -> bool:
    return any(
        name in vars(base) and base.__module__.startswith(OURS) for base in inspect.getmro(kind)
    )


def _signature(found: Any) -> str:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return "()"
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    return _short(str(signature.replace(parameters=parameters)))


def _short(hint: Any) -> str:
    """A type as one would write it after an import."""
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", None) or str(hint)
    text = re.sub(r"<(\w+) object at 0x[0-9a-f]+>", r"\1", str(text))
    text = re.sub(r"<class '([\w.]+)'>", r"\1", text)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z_])", "", text).replace("'", "")


def _doc(found: Any) -> str:
    text = inspect.getdoc(found) or ""
    if inspect.isclass(found) and text.startswith(f"{found.__name__}("):
        return ""  # a dataclass's own signature
    return text
