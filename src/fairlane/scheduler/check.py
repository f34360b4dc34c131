"""Checks triggers as they are written: every fault at once, each with its pointer."""

from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core.json import dumps, pointer_to
from fairlane.definitions.definition import Definition
from fairlane.definitions.fields import KEY, VERSION, kind, storable
from fairlane.errors import Fault, TriggerInvalid
from fairlane.scheduler import filter as filters
from fairlane.scheduler import fits, names, template
from fairlane.scheduler.cron import Cron, CronInvalid

YEAR = 31_622_400
DAY = 86_400
# Events come as often as they like, and the same work need not be done for each; a schedule says
# itself how often.
EVENT_WINDOW = 300
LARGEST = 256 * 1024

DEFAULTS: dict[str, Any] = {
    "is_enabled": True,
    "event_name": None,
    "filter": None,
    "cron_expr": None,
    "timezone": None,
    "version": None,
    "payload_template": {},
    "dedupe_window_seconds": 0,
    "missed": "once",
    "overlap": "allow",
    "jitter_seconds": 0,
}
FIELDS = ("label", "trigger_type", "definition_key", *DEFAULTS)
ONLY = {
    "event": ("event_name", "filter"),
    "schedule": ("cron_expr", "timezone", "missed", "jitter_seconds"),
}
ALSO_CALLED = {
    "name": "label",
    "type": "trigger_type",
    "event": "event_name",
    "cron": "cron_expr",
    "schedule": "cron_expr",
    "tz": "timezone",
    "time_zone": "timezone",
    "definition": "definition_key",
    "key": "definition_key",
    "payload": "payload_template",
    "template": "payload_template",
    "enabled": "is_enabled",
    "dedupe_window": "dedupe_window_seconds",
    "jitter": "jitter_seconds",
}


def refusal(what: str, faults: list[Fault]) -> TriggerInvalid:
    told = "; ".join(map(str, faults[:5]))
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return TriggerInvalid(f"{what}, nothing was changed: {told}{more}", faults)


def whole(written: Any, pointer: str = "") -> tuple[dict[str, Any], list[Fault]]:
    """A trigger with its defaults, and what is wrong with it in itself."""
    if not isinstance(written, Mapping):
        return {}, [Fault(pointer, f"a trigger is an object, not {kind(written)}")]
    faults = [_unknown(str(name), pointer) for name in written if name not in FIELDS]
    said = {name: each for name, each in written.items() if each is not None and name in FIELDS}
    trigger_type = said.get("trigger_type") or _guessed(said)
    for name, value in said.items():
        here = f"{pointer}/{name}"
        faults += storable(value, here) or _field_faults(name, value, here)
    if trigger_type not in ONLY:
        if "trigger_type" not in said:
            faults.append(Fault(f"{pointer}/trigger_type", 'give "event" or "schedule"'))
        return {}, faults
    faults += _missing(said, trigger_type, pointer)
    other = "schedule" if trigger_type == "event" else "event"
    faults += [
        Fault(f"{pointer}/{name}", f"is for a trigger of type {other}")
        for name in ONLY[other]
        if name in said and said[name] != DEFAULTS[name]
    ]
    found = {**DEFAULTS, **said, "trigger_type": trigger_type}
    if trigger_type == "schedule":
        found["timezone"] = found["timezone"] or "UTC"
    elif "dedupe_window_seconds" not in said:
        found["dedupe_window_seconds"] = EVENT_WINDOW
    if not faults:
        faults += _together(found, pointer)
    return found, faults


def against(found: Mapping[str, Any], definition: Definition | None, pointer: str) -> list[Fault]:
    """What is wrong with a trigger that is right in itself, given its definition."""
    if definition is None:
        which = found["definition_key"] + (f" {found['version']}" if found["version"] else "")
        return [Fault(f"{pointer}/definition_key", f'there is no definition "{which}"')]
    return fits.faults_of(found["payload_template"], definition, f"{pointer}/payload_template")


def _guessed(said: Mapping[str, Any]) -> str | None:
    if "cron_expr" in said:
        return "schedule"
    return "event" if "event_name" in said else None


def _unknown(name: str, pointer: str) -> Fault:
    meant = ALSO_CALLED.get(name)
    known = f'it is called "{meant}" here' if meant else f"there are {', '.join(FIELDS)}"
    return Fault(pointer_to(pointer, name), f"a trigger has no such field; {known}")


def _missing(said: Mapping[str, Any], trigger_type: str, pointer: str) -> list[Fault]:
    needed = ("label", "definition_key", ONLY[trigger_type][0])
    return [
        Fault(f"{pointer}/{name}", f"a trigger of type {trigger_type} needs it")
        for name in needed
        if name not in said
    ]


def _together(found: Mapping[str, Any], pointer: str) -> list[Fault]:
    faults = template.faults_of(
        found["payload_template"], found["trigger_type"], f"{pointer}/payload_template"
    )
    if found["trigger_type"] == "schedule":
        try:
            Cron.read(found["cron_expr"], found["timezone"])
        except CronInvalid as error:
            wrong = "timezone" if "time zone" in str(error) else "cron_expr"
            faults.append(Fault(f"{pointer}/{wrong}", str(error)))
    return faults


def _field_faults(name: str, value: Any, pointer: str) -> list[Fault]:
    if name == "filter":
        return filters.faults_of(value, pointer)
    is_right, expected = READERS[name]
    return [] if is_right(value) else [Fault(pointer, f"{expected}, not {kind(value)}")]


def _text(most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and 1 <= len(value) <= most


def _seconds(most: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    )


def _one_of(*words: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in words, f"give {' or '.join(words)}"


READERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "label": (_text(200), "give a text of 1 to 200 characters"),
    "trigger_type": _one_of("event", "schedule"),
    "is_enabled": (lambda value: isinstance(value, bool), "give true or false"),
    "event_name": (
        lambda value: isinstance(value, str) and names.is_pattern(value),
        "give a name like provider.folder.updated, or a pattern like provider.*",
    ),
    "cron_expr": (_text(200), "give a cron expression like 0 3 * * *"),
    "timezone": (_text(64), "give an IANA time zone like Europe/Berlin"),
    "definition_key": (
        lambda value: isinstance(value, str) and KEY.fullmatch(value) is not None,
        "give the key of a definition",
    ),
    "version": (
        lambda value: isinstance(value, str) and VERSION.fullmatch(value) is not None,
        "give a version, as text",
    ),
    "payload_template": (
        lambda value: isinstance(value, Mapping) and len(dumps(value)) <= LARGEST,
        f"give an object of at most {LARGEST} bytes",
    ),
    "dedupe_window_seconds": (_seconds(YEAR), f"give 0 to {YEAR} seconds"),
    "missed": _one_of("skip", "once", "all"),
    "overlap": _one_of("allow", "skip", "queue"),
    "jitter_seconds": (_seconds(DAY), f"give 0 to {DAY} seconds"),
}
