// <fl-log>: new lines as they are written, in the page's own text, so that find and copy work.
// @ts-check
import { all, one, parsed, toast } from "./dom.js";
import { hear } from "./live.js";

const MOST = 25000;

customElements.define("fl-log", class extends HTMLElement {
  connectedCallback() {
    const log = /** @type {HTMLElement} */ (one(".log", this));
    /** @type {HTMLInputElement} */
    const follow = /** @type {any} */ (one("[data-follow]", this));
    const tools = /** @type {HTMLElement} */ (one(".tools", this));
    tools.hidden = false;
    let busy = false, again = false;
    const down = () => { if (follow.checked) log.scrollTop = log.scrollHeight; };
    const fetchMore = async () => {
      again = busy;
      if (busy) return;
      busy = true;
      const last = log.lastElementChild instanceof HTMLElement ? log.lastElementChild.dataset.seq : "0";
      try {
        const answer = await fetch(`${this.dataset.url}?after=${last}`);
        if (answer.ok) {
          const lines = [...parsed(await answer.text()).body.children];
          log.append(...lines.map((line) => document.importNode(line, true)));
          while (log.childElementCount > MOST) log.firstElementChild?.remove();
          if (lines.length) { one(".none", this)?.remove(); document.dispatchEvent(new Event("fl:after")); down(); }
        }
      } catch { /* the badge tells */ }
      busy = false;
      if (again) void fetchMore();
    };
    hear((topic) => { if (topic === this.dataset.topic) void fetchMore(); });
    log.addEventListener("scroll", () => { follow.checked = log.scrollHeight - log.scrollTop - log.clientHeight < 24; });
    follow.addEventListener("change", down);
    one("[data-wrap]", this)?.addEventListener("change", (event) => log.classList.toggle("wrap", /** @type {any} */ (event.target).checked));
    one("select", this)?.addEventListener("change", (event) => { log.dataset.level = /** @type {any} */ (event.target).value; });
    one("[data-copy-lines]", this)?.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(all(".line", log).map((line) => line.textContent).join("\n"));
      toast("Copied the lines.");
    });
    down();
  }
});
