// Times: `ago` and `for` go on by themselves, the others are written in the reader's zone.
// @ts-check
import { all } from "./dom.js";

const zone = document.body.dataset.zone === "local" ? undefined : document.body.dataset.zone;
const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
const name = zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @param {number} seconds */
function ago(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const said = size >= 86400 ? `${Math.floor(size / 86400)} d` : size >= 3600 ? `${Math.floor(size / 3600)} h`
    : size >= 60 ? `${Math.floor(size / 60)} min` : `${Math.floor(size)} s`;
  return seconds > 0 ? `${said} ago` : `in ${said}`;
}

/** @param {number} size */
function going(size) {
  const whole = Math.max(Math.floor(size), 0);
  if (whole < 60) return `${whole} s`;
  const [unit, part, less, rest] = whole < 3600 ? [60, 1, "min", "s"] : whole < 86400 ? [3600, 60, "h", "min"] : [86400, 3600, "d", "h"];
  const left = Math.floor(whole % Number(unit) / Number(part));
  return `${Math.floor(whole / Number(unit))} ${less}${left ? ` ${left} ${rest}` : ""}`;
}

/** @param {ParentNode} [root] */
export function tick(root = document) {
  for (const each of all("time[data-as]", root)) {
    const moment = new Date(each.getAttribute("datetime") ?? "");
    const style = each.dataset.as;
    const gone = (Date.now() - moment.getTime()) / 1000;
    const said = style === "ago" ? ago(gone) : style === "for" ? going(gone)
      : style === "clock" ? clock.format(moment) : style === "day" ? full.format(moment).slice(0, 10) : `${full.format(moment)} ${name}`;
    if (each.textContent !== said) each.textContent = said;
    const title = `${full.format(moment)} ${name}`;
    if (each.title !== title) each.title = title;
  }
}

tick();
setInterval(tick, 1000);
document.addEventListener("fl:after", () => tick());
