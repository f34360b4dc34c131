// Small words for the page: find, make, morph. The only door to HTML from the server is `parsed`.
// @ts-check

/** @type {{createHTML(text: string): any}} */
const policy = window.trustedTypes?.createPolicy("fairlane", { createHTML: (/** @type {string} */ text) => text })
  ?? { createHTML: (text) => text };

/** @param {string} selector @param {ParentNode} [root] @returns {HTMLElement | null} */
export const one = (selector, root = document) => root.querySelector(selector);
/** @param {string} selector @param {ParentNode} [root] @returns {HTMLElement[]} */
export const all = (selector, root = document) => [...root.querySelectorAll(selector)].map((each) => /** @type {HTMLElement} */ (each));

/** HTML that our own server rendered, as a document that runs nothing. @param {string} text */
export const parsed = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");

/** @param {string} tag @param {string} text @param {string} [className] */
export function make(tag, text, className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

/** @param {string} text @param {boolean} [bad] @param {{url: string, fields: Record<string, string>} | null} [undo] */
export function toast(text, bad = false, undo = null) {
  const made = make("div", "", bad ? "toast bad" : "toast");
  made.append(make("span", text));
  if (undo) {
    const form = /** @type {HTMLFormElement} */ (make("form", "", "inline"));
    form.action = undo.url;
    form.dataset.quiet = "";
    const token = /** @type {HTMLInputElement | null} */ (one("input[name=_token]"));
    for (const [name, value] of Object.entries({ ...undo.fields, _token: token?.value ?? "" })) {
      const field = /** @type {HTMLInputElement} */ (make("input", ""));
      Object.assign(field, { type: "hidden", name, value });
      form.append(field);
    }
    form.append(make("button", "Undo", "button small"));
    made.append(form);
  }
  one("#toasts")?.append(made);
  setTimeout(() => made.remove(), bad || undo ? 10000 : 5000);
}

/** @param {Node} node */
const key = (node) => (node instanceof Element && node.id) || "";
/** @param {Node} a @param {Node} b */
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);

/** Make `old` like `fresh` and keep what is the same: focus, selection, scroll, what a person typed.
 * Children are matched by id, then by their order. What has data-keep is the browser's own.
 * @param {Element} old @param {Element} fresh */
export function morph(old, fresh) {
  if (old.hasAttribute("data-keep")) return;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !kept(old, name)) old.setAttribute(name, value);
  const byId = new Map([...old.children].filter(key).map((each) => [each.id, each]));
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const same = (key(next) && byId.get(key(next))) || (at && alike(at, next) ? at : null);
    if (!same || same.nodeName !== next.nodeName) {
      old.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    if (same instanceof Element) morph(same, /** @type {Element} */ (next));
    else if (same.nodeValue !== next.nodeValue) change(same, next.nodeValue);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    if (!(gone instanceof Element && gone.hasAttribute("data-keep"))) gone.remove();
  }
}

/** What a person or a module has set, and the server knows nothing of. @param {Element} node @param {string} name */
function kept(node, name) {
  return name === "open" || name === "data-shown" || name === "aria-selected" || name === "aria-busy"
    || (name === "hidden" && node.hasAttribute("data-shown"))
    || (name === "class" && node.hasAttribute("data-row"));
}

/** A number that changed blinks once. @param {Node} node @param {string | null} value */
function change(node, value) {
  node.nodeValue = value;
  const around = node.parentElement;
  if (around?.matches("b, .num")) {
    around.classList.add("blink");
    around.addEventListener("animationend", () => around.classList.remove("blink"), { once: true });
  }
}
