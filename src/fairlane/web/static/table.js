// Lists: selection, keys, and rows that do not move under the reader.
// @ts-check
import { all, make, one } from "./dom.js";
import { refresh } from "./live.js";

let at = "", anchor = "", skip = false;
const rows = () => all("tr[data-row]");
/** @param {Element} row @returns {HTMLInputElement | null} */
const box = (row) => row.querySelector("input[type=checkbox][name]");
const chosen = () => rows().filter((row) => box(row)?.checked);

function show() {
  const count = chosen().length;
  for (const row of rows()) {
    if (box(row)?.checked) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
    row.classList.toggle("at", row.id === at);
  }
  for (const bar of all("[data-select] .bar")) {
    bar.hidden = !count;
    bar.dataset.shown = "";
    bar.classList.add("float");
    const said = one("[data-count]", bar);
    if (said) said.textContent = `${count} selected`;
  }
  for (const every of all("[data-all]")) { every.hidden = false; every.dataset.shown = ""; /** @type {HTMLInputElement} */ (every).checked = count > 0 && count === rows().length; }
}

/** @param {number} step */
export function move(step) {
  const list = rows();
  const now = list.findIndex((row) => row.id === at);
  const next = list[Math.min(Math.max(now + step, 0), list.length - 1)];
  if (!next) return;
  at = next.id;
  one("a", next)?.focus();
  next.scrollIntoView({ block: "nearest" });
  show();
}

/** @param {boolean} range */
export function pick(range) {
  const list = rows();
  const here = list.findIndex((row) => row.id === at);
  const from = range ? list.findIndex((row) => row.id === anchor) : here;
  if (here < 0) return;
  const value = range || !box(list[here])?.checked;
  for (const row of list.slice(Math.min(here, from < 0 ? here : from), Math.max(here, from) + 1)) { const found = box(row); if (found) found.checked = value; }
  anchor = at;
  show();
}

/** @param {string} letter */
export function act(letter) { one(`[data-act="${letter}"]`, document.getElementById(at) ?? document.createElement("i"))?.click(); }
export function clear() { for (const row of chosen()) { const found = box(row); if (found) found.checked = false; } show(); }

document.addEventListener("change", (event) => {
  const target = /** @type {HTMLInputElement} */ (event.target);
  if (target.matches("[data-all]")) for (const row of rows()) { const found = box(row); if (found) found.checked = target.checked; }
  if (target.closest("[data-select]")) { at = target.closest("tr")?.id ?? at; anchor = at; show(); }
});

// Rows that are shown change in place. New ones come in at the top of the first page while nothing is
// selected; otherwise a chip counts them.
document.addEventListener("fl:before", (event) => {
  const { old, fresh } = /** @type {CustomEvent} */ (event).detail;
  const list = all("tr[data-row]", old);
  if (skip || !list.length || !(old.hasAttribute("data-hold") || chosen().length)) return;
  const known = new Map(list.map((row) => [row.id, row]));
  const coming = all("tr[data-row]", fresh);
  const added = coming.filter((row) => !known.has(row.id));
  const body = coming[0]?.parentElement;
  if (!body) return;
  const changed = new Map(coming.map((row) => [row.id, row]));
  body.replaceChildren(...list.map((row) => changed.get(row.id) ?? row.cloneNode(true)));
  if (added.length && !old.hasAttribute("data-hold")) {
    const chip = /** @type {HTMLButtonElement} */ (make("button", `${added.length} new`, "chip news"));
    chip.type = "button"; chip.id = "news"; chip.dataset.keep = "";
    one("#news")?.remove();
    chip.onclick = () => { clear(); chip.remove(); skip = true; void refresh(); location.reload(); };
    fresh.prepend(chip);
  }
});
document.addEventListener("fl:after", show);
show();
