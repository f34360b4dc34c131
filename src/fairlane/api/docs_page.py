"""The page at /docs: the OpenAPI document in plain HTML, with nothing from any other host."""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fairlane API</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  details { border: 1px solid #8884; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem; }
  summary { cursor: pointer; display: flex; gap: .8rem; align-items: baseline; }
  code, pre { font: 13px/1.45 ui-monospace, monospace; }
  pre { overflow: auto; background: #8881; padding: .6rem; border-radius: 6px; }
  .method { font-weight: 600; width: 4rem; text-transform: uppercase; }
  .role { margin-left: auto; opacity: .7; font-size: 13px; }
  table { border-collapse: collapse; width: 100%; }
  td, th { text-align: left; padding: .2rem .6rem .2rem 0; vertical-align: top; }
</style>
<h1>Fairlane API</h1>
<p id="about"></p>
<p><a href="openapi.json">openapi.json</a></p>
<main id="calls">Loading the document.</main>
<script>
"use strict";
const make = (tag, text, kind) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
let api;
const find = (thing) =>
  thing && thing.$ref ? thing.$ref.slice(2).split("/").reduce((at, step) => at[step], api) : thing;
const example = (schema, depth = 0) => {
  schema = find(schema) || {};
  if (schema.examples) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  const other = schema.anyOf || schema.oneOf || schema.allOf;
  if (other) return example(other[0], depth);
  if (depth > 4) return null;
  switch (schema.type) {
    case "object": return Object.fromEntries(Object.entries(schema.properties || {})
      .map(([name, each]) => [name, example(each, depth + 1)]));
    case "array": return schema.items ? [example(schema.items, depth + 1)] : [];
    case "integer": case "number": return 0;
    case "boolean": return false;
    case "string": return schema.format === "date-time" ? "2026-02-16T10:30:00Z" : "";
    default: return null;
  }
};
const shown = (content) => {
  const schema = content && Object.values(content)[0] && Object.values(content)[0].schema;
  return schema ? make("pre", JSON.stringify(example(schema), null, 2)) : make("span");
};
const call = (path, method, operation) => {
  const box = make("details");
  const head = make("summary");
  const role = operation["x-fairlane-role"];
  head.append(make("span", method, "method"), make("code", path),
              make("span", operation.summary || ""), make("span", role || "", "role"));
  box.append(head);
  if (operation.description) box.append(make("p", operation.description));
  const parameters = (operation.parameters || []).map(find);
  if (parameters.length) {
    const table = make("table");
    for (const each of parameters) {
      const row = make("tr");
      row.append(make("td", each.name), make("td", each.in), make("td", each.description || ""));
      table.append(row);
    }
    box.append(make("h4", "Parameters"), table);
  }
  if (operation.requestBody) {
    box.append(make("h4", "Body"), shown(operation.requestBody.content));
  }
  box.append(make("h4", "Answers"));
  for (const [status, answer] of Object.entries(operation.responses)) {
    box.append(make("p", status + "  " + (find(answer).description || "")));
    if (status < "300") box.append(shown(find(answer).content));
  }
  return box;
};
fetch("openapi.json").then((answer) => answer.json()).then((found) => {
  api = found;
  document.getElementById("about").textContent = api.info.description;
  const calls = document.getElementById("calls");
  calls.textContent = "";
  for (const tag of api.tags) {
    calls.append(make("h2", tag.name), make("p", tag.description));
    for (const [path, operations] of Object.entries(api.paths))
      for (const [method, operation] of Object.entries(operations))
        if ((operation.tags || [])[0] === tag.name) calls.append(call(path, method, operation));
  }
});
</script>
</html>
"""
