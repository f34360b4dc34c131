// <fl-chart>: a read-out under the pointer, out of the table that the chart brings along.
// @ts-check
import { all, make } from "./dom.js";

const LEFT = 34, RIGHT = 4;

customElements.define("fl-chart", class extends HTMLElement {
  connectedCallback() {
    this.addEventListener("pointermove", (event) => this.show(event));
    this.addEventListener("pointerleave", () => this.hide());
  }

  hide() { for (const each of all(".tip, .hair", this)) each.remove(); }

  /** @param {PointerEvent} event */
  show(event) {
    const svg = this.querySelector("svg");
    const rows = all("tbody tr", this);
    if (!svg || rows.length < 2) return;
    const box = svg.getBoundingClientRect();
    const { width, height } = svg.viewBox.baseVal;
    const x = (event.clientX - box.left) / box.width * width;
    const step = (width - LEFT - RIGHT) / (rows.length - 1);
    const at = Math.min(Math.max(Math.round((x - LEFT) / step), 0), rows.length - 1);
    this.hide();
    const hair = document.createElementNS("http://www.w3.org/2000/svg", "path");
    hair.setAttribute("class", "hair");
    hair.setAttribute("d", `M${LEFT + at * step} 8V${height - 18}`);
    svg.append(hair);
    const names = all("thead th", this).map((each) => each.textContent);
    const tip = make("div", "", `tip ${at * 2 < rows.length ? "right" : "left"}`);
    tip.dataset.keep = "";
    [...rows[at].children].forEach((cell, number) => tip.append(make("div", number ? `${names[number]} ${cell.textContent}` : cell.textContent ?? "")));
    this.append(tip);
  }
});
