// Forms that act without leaving the page, and ask first where the effect is large.
// @ts-check
import { all, one, parsed, toast } from "./dom.js";
import { place, stale } from "./live.js";

/** @param {string} title @param {string} text @param {string} verb @returns {Promise<boolean>} */
export function confirmed(title, text, verb) {
  const dialog = /** @type {HTMLDialogElement} */ (one("#confirm"));
  /** @type {HTMLElement} */ (one("h2", dialog)).textContent = title;
  /** @type {HTMLElement} */ (one("p", dialog)).textContent = text;
  /** @type {HTMLElement} */ (one("[value=yes]", dialog)).textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches("[data-quiet]")) return;
  event.preventDefault();
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const asks = button?.dataset.confirm ?? form.dataset.confirm;
  const verb = button?.dataset.verb ?? form.dataset.verb ?? "";
  if (asks && !(await confirmed(`${verb}?`, asks, verb))) return;
  const fields = new FormData(form, button);
  button?.setAttribute("aria-busy", "true");
  // By attribute: a field that is named action hides the form's own, and formAction is never empty.
  try {
    const answer = await fetch(button?.getAttribute("formaction") ?? form.getAttribute("action") ?? "", { method: "POST", body: new URLSearchParams(/** @type {any} */ (fields)), headers: { "X-Quiet": "1" } });
    if (answer.status === 401) return location.reload();
    const { said, to, undo } = await answer.json();
    if (answer.ok && to && new URL(to, location.href).pathname !== location.pathname) return location.assign(to);
    toast(said, !answer.ok, undo);
    form.closest(".toast")?.remove();
    for (const box of all("input[type=checkbox][name]:checked", form)) /** @type {HTMLInputElement} */ (box).checked = false;
    document.dispatchEvent(new Event("fl:after"));
    stale();
  } catch {
    toast("The server does not answer; nothing is known to have changed.", true);
  } finally {
    button?.removeAttribute("aria-busy");
  }
});

// A form that shows what it would do, in the region it names, while it is written.
let later = 0;
document.addEventListener("input", (event) => {
  const form = /** @type {HTMLElement} */ (event.target).closest("form");
  if (!form?.dataset.preview) return;
  clearTimeout(later);
  later = setTimeout(async () => {
    const fields = new FormData(form);
    fields.set("do", "try");
    const answer = await fetch(form.getAttribute("action") ?? "", { method: "POST", body: new URLSearchParams(/** @type {any} */ (fields)), headers: { "X-Fragment": form.dataset.preview ?? "" } });
    if (answer.ok) place(parsed(await answer.text()));
  }, 250);
});

document.addEventListener("click", async (event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest("[data-copy]");
  if (!(button instanceof HTMLElement)) return;
  await navigator.clipboard?.writeText(button.dataset.copy ?? "");
  toast(button.dataset.said ?? "Copied.");
});
// What needs a script is shown by one.
function reveal() { for (const each of all("button[data-copy][hidden]")) { each.hidden = false; each.dataset.shown = ""; } }
document.addEventListener("fl:after", reveal);
reveal();
