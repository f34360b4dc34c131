"""The HTTP API, from the document that the server serves."""

from typing import Any

from docsite.reference.words import cell, code, table
from fairlane.api.app import asgi


def page() -> str:
    document = asgi("postgresql://localhost/never-asked").openapi()
    lines = [
        "# HTTP API",
        "",
        "What holds for every call: [The HTTP API](../api.md). The same as a document: "
        "`/openapi.json` of any server; as a page to try calls on: its `/docs`.",
    ]
    for tag, calls in _by_tag(document).items():
        lines += ["", f"## {tag}"]
        for method, path, call in calls:
            lines += ["", f"### {method} {path}".replace("{", "\\{"), "", *_call(call, document)]
    return "\n".join(lines)


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            if isinstance(call, dict) and "responses" in call:
                tag = (call.get("tags") or ["Health and metrics"])[0]
                found.setdefault(tag, []).append((method.upper(), path, call))
    return found


def _call(call: dict[str, Any], document: dict[str, Any]) -> list[str]:
    role = call.get("x-fairlane-role")
    lines = [cell(call.get("summary", "")), ""]
    if call.get("description"):
        lines += [cell(call["description"]), ""]
    if role:
        lines += [f"Role: {code(role)}", ""]
    if parameters := call.get("parameters"):
        lines += table(
            ("parameter", "in", "type", "what it is"),
            (
                (
                    code(p["name"]),
                    p["in"],
                    _type(p.get("schema", {})),
                    cell(p.get("description", "")),
                )
                for p in (_at(p, document) for p in parameters)
            ),
        )
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        lines += ["Body:", *_fields(_at(body, document))]
    answers = ", ".join(
        f"{status} {_shape(answer)}".strip() for status, answer in call["responses"].items()
    )
    return [*lines, f"Answers: {answers}"]


def _at(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    found: Any = schema
    while "$ref" in found:
        at: Any = document
        for step in found["$ref"].removeprefix("#/").split("/"):
            at = at[step]
        found = at
    result: dict[str, Any] = found
    return result


def _fields(schema: dict[str, Any]) -> list[str]:
    needed = schema.get("required", [])
    return table(
        ("field", "type", "what it is"),
        (
            (
                code(name) + (" (needed)" if name in needed else ""),
                _type(field),
                cell(field.get("description", "")),
            )
            for name, field in schema.get("properties", {}).items()
        ),
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(_type(each) for each in schema[word])
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or schema.get("const") or "any")


def _shape(answer: dict[str, Any]) -> str:
    for media in answer.get("content", {}).values():
        if "$ref" in media.get("schema", {}):
            return f"({_type(media['schema'])})"
    return ""
