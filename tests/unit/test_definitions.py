"""Definitions as people write them: every fault by its pointer, and nothing read but data."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlane.definitions.check import Written, check, check_all
from fairlane.definitions.definition import Definition
from fairlane.definitions.differences import differences, takes_less
from fairlane.definitions.file import File, parse
from fairlane.definitions.shape import to_row, to_shape, to_written
from fairlane.errors import DefinitionInvalid

QUEUES = ("bulk", "critical", "default")
SYNC: dict[str, Any] = {
    "key": "sync-dropbox",
    "version": "1",
    "description": "Sync provider updates for a tenant",
    "executor": "command",
    "command": {
        "argv": ["zoltag", "sync-dropbox", "--tenant-id", "{tenant.id}", "{payload.path_prefix}"],
        "env": {"MODE": "nightly"},
        "success_codes": [0],
        "retry_codes": [75],
    },
    "arg_schema": {
        "type": "object",
        "properties": {"path_prefix": {"type": "string", "default": "/"}},
        "additionalProperties": False,
    },
    "queue": "default",
    "timeout_seconds": 3600,
    "max_attempts": 3,
    "retry_delays": [60, 300, 900],
    "reuse": False,
    "single_flight": False,
    "dead_letter": True,
    "redact": ["/token"],
    "is_active": True,
}
CALL: dict[str, Any] = {"url": "https://app.example/gh/{definition}:{version}/solve"}


def accepted(written: Any) -> Written:
    return check(written, queues=QUEUES)


def faults(written: Any) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionInvalid) as caught:
        check(written, queues=QUEUES)
    return [(fault.pointer, fault.message) for fault in caught.value.faults]


def pointers(written: Any) -> list[str]:
    return [pointer for pointer, _ in faults(written)]


# One definition ------------------------------------------------------------------------------


def test_the_definition_of_the_contract_is_taken_and_shown_as_it_was_written() -> None:
    found = accepted({**SYNC, "result_schema": None, "max_running": None})

    assert to_written(found.definition) == {
        **SYNC,
        "result_schema": None,
        "max_running": None,
        "max_running_per_tenant": None,
        "starts_per_minute": None,
    }
    assert found.row["settings"] == SYNC["command"]
    assert "command" not in found.row
    assert "max_running" not in found.row


def test_what_the_database_adds_is_shown_beside_it() -> None:
    shown = to_shape(accepted(SYNC).definition)

    assert {"id", "revision", "created_at", "updated_at", "set_live"} <= shown.keys()
    assert (shown["command"], "settings" in shown, "http" in shown) == (
        SYNC["command"],
        False,
        False,
    )


def test_what_is_not_said_is_not_sent() -> None:
    assert accepted({"key": "a"}).row == {"key": "a"}
    assert accepted({"key": "a", "queue": None, "is_active": False}).row == {
        "key": "a",
        "is_active": False,
    }
    assert to_row(Definition(key="a"))["queue"] == "default"


def test_an_http_definition_has_its_settings_under_http() -> None:
    found = accepted({"key": "solve", "executor": "http", "http": CALL})

    assert (found.definition.executor, found.definition.settings) == ("http", CALL)


def test_who_gives_a_command_need_not_say_that_it_is_one() -> None:
    assert accepted({"key": "a", "command": {"argv": ["true"]}}).definition.executor == "command"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("key", ["", "a b", "-x", "k" * 200, "a\nb", "a\n", 7, ["a"], None]),
        ("version", ["", "one two", "v" * 64, 1, 1.5, True, ["1"]]),
        ("description", [7, "d" * 2001, ["x"]]),
        ("executor", ["shell", 1, ["command"], {}]),
        ("queue", ["nowhere", 7, "", ["default"], {}]),
        ("timeout_seconds", [0, -1, 1.5, "60", True, 2**31, [60]]),
        ("max_attempts", [0, "3", False]),
        ("max_running", [-1, "1", True, 0.5]),
        ("max_running_per_tenant", [-1, "1"]),
        ("starts_per_minute", [0, "1"]),
        ("reuse", ["yes", 1, 0, []]),
        ("single_flight", ["no"]),
        ("dead_letter", ["true"]),
        ("is_active", [1, "on"]),
        ("retry_delays", [60, "60", {"a": 1}, [1] * 101]),
        ("redact", ["/token", {"a": 1}, ["/a"] * 101]),
        ("arg_schema", [[], "object", True]),
        ("result_schema", [[], 7, False]),
        ("command", [[], "ls", 7]),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_pointer(field: str, values: list[Any]) -> None:
    for value in values:
        assert pointers({**SYNC, field: value}) == [f"/{field}"], value


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("retry_delays", [60, -1], "/retry_delays/1"),
        ("retry_delays", ["soon"], "/retry_delays/0"),
        ("retry_delays", [None], "/retry_delays/0"),
        ("retry_delays", [[60]], "/retry_delays/0"),
        ("redact", ["/a", "token"], "/redact/1"),
        ("redact", [""], "/redact/0"),
        ("redact", ["/a~2b"], "/redact/0"),
        ("redact", ["/a~"], "/redact/0"),
        ("redact", [7], "/redact/0"),
        ("redact", ["/" + "a" * 500], "/redact/0"),
    ],
)
def test_a_part_of_a_list_is_refused_by_its_place(field: str, value: Any, pointer: str) -> None:
    assert pointers({**SYNC, field: value}) == [pointer]


@pytest.mark.parametrize("pointer", ["/token", "/a/0/b", "/users/*/password", "/a~1b~0c", "/"])
def test_a_pointer_to_a_secret_is_taken(pointer: str) -> None:
    assert accepted({"key": "a", "redact": [pointer]}).definition.redact == (pointer,)


def test_a_number_as_a_version_is_told_to_be_quoted() -> None:
    ((pointer, message),) = faults({"key": "a", "version": 1.5})

    assert (pointer, message.endswith('put it in quotes: "1.5"')) == ("/version", True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("timeout", "timeout_seconds"),
        ("max_runing", "max_running"),
        ("retry_delay", "retry_delays"),
        ("payload_schema", "arg_schema"),
        ("active", "is_active"),
    ],
)
def test_a_field_that_is_not_there_is_told_what_it_may_have_meant(name: str, meant: str) -> None:
    ((pointer, message),) = faults({"key": "a", name: 7})

    assert (pointer, f'did you mean "{meant}"?' in message) == (f"/{name}", True)


@pytest.mark.parametrize("name", ["id", "revision", "created_at", "settings", "zzz", "a/b"])
def test_a_field_that_nobody_may_say_is_refused(name: str) -> None:
    assert pointers({"key": "a", name: None}) == [f"/{name.replace('/', '~1')}"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"executor": "command"}, ["/command"]),
        ({"executor": "http"}, ["/http"]),
        ({"executor": "http", "command": {"argv": ["true"]}}, ["/command", "/http"]),
        ({"executor": "http", "http": CALL, "command": {"argv": ["true"]}}, ["/command"]),
        ({"executor": "python", "command": {"argv": ["true"]}}, ["/command"]),
        ({"command": {"argv": ["true"]}, "http": CALL}, ["/command", "/http"]),
        ({"executor": "command", "command": {}}, ["/command/argv"]),
        ({"python": {"isolation": "vm", "memory_mb": 0, "x": 1}}, None),
    ],
)
def test_an_executor_has_its_own_settings_and_no_others(
    written: dict[str, Any], expected: list[str] | None
) -> None:
    expected = expected or [
        "/python/isolation",
        "/python/memory_mb",
        "/python/memory_mb",
        "/python/x",
    ]
    assert pointers({"key": "a", **written}) == expected


def test_a_schema_that_takes_no_object_is_refused() -> None:
    assert pointers({"key": "a", "arg_schema": {"type": "string"}}) == ["/arg_schema/type"]
    either = {"type": ["object", "null"]}
    assert accepted({"key": "a", "arg_schema": either}).definition.arg_schema == either
    text = {"type": "string"}
    assert accepted({"key": "a", "result_schema": text}).definition.result_schema == text


def test_what_is_wrong_inside_a_schema_is_told_by_its_pointer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strin"}}}

    assert all(
        pointer.startswith("/arg_schema")
        for pointer in pointers({"key": "a", "arg_schema": schema})
    )


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (float("nan"), ""),
        ("a\x00b", ""),
        ("\ud800", ""),
        ({"a": float("inf")}, "/a"),
        (b"x", ""),
        ([["fine", ["\x00"]]], "/0/1/0"),
        ({"a/b": {"\x00": 1}}, "/a~1b/\x00"),
    ],
    ids=repr,
)
def test_what_the_database_cannot_hold_is_refused(value: Any, pointer: str) -> None:
    written = {**SYNC, "command": {"argv": ["true"], "env": value}}

    assert pointers(written) == [f"/command/env{pointer}"]


def test_a_definition_without_end_is_refused() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"properties": deep}

    (pointer,) = pointers({"key": "a", "arg_schema": deep})
    assert pointer.startswith("/arg_schema/properties/")


def test_every_fault_is_told_at_once() -> None:
    written = {
        "version": 1,
        "timeout": 5,
        "executor": "command",
        "command": {"argv": []},
        "queue": "nowhere",
        "retry_delays": [-1, "x"],
        "max_running": -1,
        "redact": ["token"],
    }

    assert set(pointers(written)) == {
        "/key",
        "/version",
        "/timeout",
        "/command/argv",
        "/queue",
        "/retry_delays/0",
        "/retry_delays/1",
        "/max_running",
        "/redact/0",
    }


@pytest.mark.parametrize("written", [None, 7, "a", [], ["a"]], ids=repr)
def test_what_is_no_object_is_no_definition(written: Any) -> None:
    assert pointers(written) == [""]


# Several -------------------------------------------------------------------------------------


def test_each_fault_of_each_entry_of_a_file_has_its_place() -> None:
    entries = [
        {"key": "a"},
        {"key": "b", "queue": "nowhere"},
        7,
        {"key": "c", "command": {"argv": ["x", "{payload.a", "{job.id}"]}, "max_running": -1},
    ]

    with pytest.raises(DefinitionInvalid, match=r"^defs\.yaml is refused, nothing was ") as caught:
        check_all(entries, queues=QUEUES, what="defs.yaml")

    assert [fault.pointer for fault in caught.value.faults] == [
        "/definitions/1/queue",
        "/definitions/2",
        "/definitions/3/max_running",
        "/definitions/3/command/argv/1",
    ]


def test_one_definition_twice_in_a_file_is_refused() -> None:
    with pytest.raises(DefinitionInvalid) as caught:
        check_all(
            [{"key": "a"}, {"key": "a", "version": "2"}, {"key": "a", "version": "1"}],
            queues=QUEUES,
            what="defs.yaml",
        )

    assert [str(fault) for fault in caught.value.faults] == [
        '/definitions/2/key: definition "a" version 1 is also /definitions/0'
    ]


# Files ---------------------------------------------------------------------------------------


def refused(text: str | bytes, form: str = "yaml") -> str:
    with pytest.raises(DefinitionInvalid) as caught:
        parse(text.encode() if isinstance(text, str) else text, form, "defs")
    message = str(caught.value)
    assert message.startswith("defs is refused, nothing was changed: ")
    return message


def read(text: str, form: str = "yaml") -> File:
    return parse(text.encode(), form, "defs")


YAML = """\
# comments are fine
definitions:
  - key: sync
    version: "1"
    command:
      argv: [sync, --tenant, "{tenant.id}"]
  - {key: plain, queue: bulk}
"""
TOML = """\
[[definitions]]
key = "sync"
version = "1"
command = { argv = ["sync", "--tenant", "{tenant.id}"] }

[[definitions]]
key = "plain"
queue = "bulk"
"""
JSON = """\
{"definitions": [
\t{"key": "sync", "version": "1", "command": {"argv": ["sync", "--tenant", "{tenant.id}"]}},
\t{"key": "plain", "queue": "bulk"}]}
"""


@pytest.mark.parametrize(
    ("text", "form"), [(YAML, "yaml"), (TOML, "toml"), (JSON, "json"), ("\ufeff" + YAML, "yaml")]
)
def test_a_file_reads_the_same_in_every_format(text: str, form: str) -> None:
    assert read(text, form).definitions == [
        {
            "key": "sync",
            "version": "1",
            "command": {"argv": ["sync", "--tenant", "{tenant.id}"]},
        },
        {"key": "plain", "queue": "bulk"},
    ]


def test_yaml_knows_the_line_of_each_value() -> None:
    file = read(YAML)

    assert file.place("/definitions/0/command/argv/2") == "defs, line 6"
    assert file.place("/definitions/1/queue") == "defs, line 7"
    # What is missing is missing from what is around it.
    assert file.place("/definitions/0/queue") == "defs, line 3"
    assert read(TOML, "toml").place("/definitions/0") == "defs"


def test_yaml_may_say_a_thing_once_and_use_it_again() -> None:
    file = read(
        "definitions:\n"
        "  - &base {key: a, timeout_seconds: 5, retry_delays: &d [1, 2]}\n"
        "  - {<<: *base, key: b}\n"
        "  - {key: c, retry_delays: *d}\n"
    )

    assert file.definitions[1] == {"key": "b", "timeout_seconds": 5, "retry_delays": [1, 2]}
    assert file.definitions[2] == {"key": "c", "retry_delays": [1, 2]}


def bombs() -> Iterator[str]:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    yield "\n".join([*lines, "definitions: []"])
    yield "definitions: &a [*a]"
    yield "definitions: &a {key: *a}"
    yield "definitions:\n" + "\n".join(f"{'  ' * n}- " for n in range(1, 500))
    yield "definitions: " + "[" * 5000
    yield "definitions: " + "[" * 100 + "]" * 100
    yield "definitions: " + "{a: " * 5000


@pytest.mark.parametrize("text", list(bombs()), ids=lambda text: text[-40:])
def test_a_file_that_grows_or_nests_without_end_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("form", ["yaml", "toml", "json"])
def test_a_file_nested_too_deep_or_too_large_is_refused(form: str) -> None:
    opening = {"yaml": "definitions: ", "toml": "definitions = ", "json": '{"definitions": '}[form]
    refused(opening + "[" * 100_000, form)
    assert "1 MiB" in refused("#" * (1024 * 1024 + 1), form)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("definitions:\n  - key: a\n    key: b\n", 'line 3: the name "key" stands twice'),
        ("definitions:\n  - 1: a\n", "line 2: a name is text; put 1 in quotes"),
        ("definitions:\n  - on: a\n", "put on in quotes"),
        ("definitions:\n  - ? [a]\n    : b\n", "a name is text"),
        ("definitions: []\n---\ndefinitions: []\n", "line 2: a second document begins"),
        ("definitions:\n  - key: !!python/name:os.system x\n", "python/name:os.system"),
        ("definitions: !!python/object/apply:os.system [ls]\n", "is not read here"),
        ("definitions: !mine {}\n", "the tag !mine"),
        ("definitions: !!set {a}\n", "set"),
        ("definitions:\n  - key: 2024-01-01\n", "2024-01-01 is a timestamp; put it in quotes"),
        ("definitions:\n  - key: !!int x\n", "x is no int"),
        ("definitions:\n  - key: 'a\n", "line 3"),
        ("definitions:\n\t- key: a\n", "line 2"),
        ("definitions: *nobody\n", "line 1"),
        ("definitions:\n  - <<: 7\n", "<< takes an object"),
        ("", "none"),
        ("- key: a\n", "a list"),
        ("definitions: {key: a}\n", "an object"),
        ("definition: []\n", "none"),
        ("definitions: []\ndefaults: {}\n", '/defaults: a file has no "defaults"'),
    ],
)
def test_what_yaml_can_and_a_file_may_not_is_refused(text: str, told: str) -> None:
    assert told in refused(text)


def test_several_faults_of_the_yaml_itself_are_told_at_once() -> None:
    told = refused("definitions:\n  - {key: 2024-01-01, 1: x}\n  - {a: 1, a: 2}\n")

    assert all(f"line {line}" in told for line in (2, 3))
    assert told.count("line ") == 3


@pytest.mark.parametrize(
    ("text", "form", "told"),
    [
        ('key = "a"\nkey = "b"\n', "toml", "it is no TOML"),
        ("definitions = ]", "toml", "line 1"),
        ('{"definitions": [], "definitions": []}', "json", '"definitions" stands twice'),
        ('{"definitions": [NaN]}', "json", "JSON has no NaN"),
        ("{", "json", "it is no JSON"),
    ],
)
def test_what_is_wrong_with_toml_and_json_is_told(text: str, form: str, told: str) -> None:
    assert told in refused(text, form)


def test_bytes_that_are_no_text_are_refused() -> None:
    assert "not UTF-8 at byte 2" in refused(b"a:\xff")


def test_a_date_in_toml_is_no_value_of_a_definition() -> None:
    file = read("[[definitions]]\nkey = 2024-01-01\n", "toml")

    assert pointers(file.definitions[0]) == ["/key"]


def test_triggers_may_stand_in_the_same_file() -> None:
    assert read("definitions: []\ntriggers: []\n").others == ["triggers"]


# Differences ---------------------------------------------------------------------------------


def test_differences_go_as_deep_as_objects_do() -> None:
    old = {"a": {"b": [1, 2], "c": 1}, "d": None, "e": True}
    new = {"a": {"b": [1, 3], "c": 1, "x/y": 2}, "d": 5, "e": 1}

    assert [tuple(each) for each in differences(old, new)] == [
        ("/a/b", [1, 2], [1, 3]),
        ("/a/x~1y", None, 2),
        ("/d", None, 5),
        ("/e", True, 1),
    ]


OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("new", "less"),
    [
        ({**OBJECT, "description": "said better"}, False),
        ({"type": "object"}, False),
        ({**OBJECT, "properties": {"a": {"type": ["string", "null"]}}}, False),
        ({**OBJECT, "properties": {"a": {"type": "string", "minLength": 1}}}, True),
        ({**OBJECT, "required": ["a"]}, True),
        (
            {"properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]},
            False,
        ),
        ({**OBJECT, "additionalProperties": False}, True),
        ({**OBJECT, "properties": {"a": {"type": "integer"}}}, True),
    ],
)
def test_a_schema_that_takes_less_than_it_did_is_noticed(new: dict[str, Any], less: bool) -> None:
    assert takes_less(OBJECT, new) is less
