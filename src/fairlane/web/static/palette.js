// Keys, help, and the palette: pages from the navigation, jobs, kinds and tenants from the server.
// @ts-check
import { all, make, one } from "./dom.js";
import { pause } from "./live.js";
import { act, clear, move, pick } from "./table.js";

const dialog = /** @type {HTMLDialogElement | null} */ (one("#palette"));
const input = /** @type {HTMLInputElement | null} */ (dialog?.querySelector("input"));
const list = one("#palette-list");
let chosen = 0, asked = 0, goes = 0;

/** @param {{text: string, url: string}[]} items */
function show(items) {
  chosen = 0;
  list?.replaceChildren(...items.map((item, number) => {
    const row = make("li", item.text);
    row.id = `palette-${number}`;
    row.setAttribute("role", "option");
    row.dataset.url = item.url;
    row.onclick = () => location.assign(item.url);
    return row;
  }));
  mark(0);
}

/** @param {number} step */
function mark(step) {
  const rows = list ? [...list.children] : [];
  chosen = Math.min(Math.max(chosen + step, 0), rows.length - 1);
  rows.forEach((row, number) => row.setAttribute("aria-selected", String(number === chosen)));
  input?.setAttribute("aria-activedescendant", rows[chosen]?.id ?? "");
}

async function search() {
  const text = input?.value.trim().toLowerCase() ?? "";
  const pages = all(".side nav a, .foot a").map((link) => ({ text: link.firstChild?.textContent?.trim() ?? "", url: /** @type {HTMLAnchorElement} */ (link).href }));
  const found = pages.filter((page) => page.text.toLowerCase().includes(text));
  show(found.slice(0, 8));
  if (!text) return;
  const turn = ++asked;
  const url = new URL(document.body.dataset.palette ?? "", location.href);
  url.searchParams.set("q", text);
  const answer = await fetch(url).then((each) => each.json()).catch(() => ({ items: [] }));
  if (turn === asked) show([...answer.items, ...found].slice(0, 12));
}

export function open() { if (dialog && input) { dialog.showModal(); input.value = ""; void search(); } }

input?.addEventListener("input", () => void search());
input?.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); mark(event.key === "ArrowDown" ? 1 : -1); }
  if (event.key === "Enter") { const row = list?.children[chosen]; if (row instanceof HTMLElement && row.dataset.url) location.assign(row.dataset.url); }
});
for (const each of all("[data-open=palette]")) { each.hidden = false; each.onclick = open; }

/** @type {Record<string, (event: KeyboardEvent) => void>} */
const KEYS = {
  "?": () => /** @type {HTMLDialogElement | null} */ (one("#help"))?.showModal(),
  "/": (event) => { event.preventDefault(); one("#filter")?.focus(); },
  ".": () => pause(), j: () => move(1), k: () => move(-1), x: () => pick(false), X: () => pick(true),
  c: () => act("c"), r: () => act("r"), Escape: () => clear(), g: () => { goes = Date.now(); },
};

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); open(); return; }
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || document.body.dataset.keys === "off") return;
  if (target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]") || one("dialog[open]")) return;
  if (Date.now() - goes < 1500 && event.key !== "g") {
    goes = 0;
    const link = one(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); return; }
  }
  KEYS[event.key]?.(event);
});
document.addEventListener("click", (event) => {
  for (const each of all("details.switch[open]")) if (!each.contains(/** @type {Node} */ (event.target))) each.removeAttribute("open");
});
