// Live regions: one stream a browser, whichever of its tabs holds the lock; the others are told by
// a channel. A region is any element with an id and data-live="topic topic"; when a topic is dirty
// the page's own URL is asked for that region, and the answer is morphed in.
// @ts-check
import { all, morph, one, parsed } from "./dom.js";

const POLL = 5000;
const channel = new BroadcastChannel("fairlane");
/** Topics of every tab, by tab. @type {Map<string, {topics: string[], at: number}>} */
const tabs = new Map();
const me = crypto.randomUUID();
/** @type {Map<string, string>} */
const tags = new Map();
/** @type {Set<string>} */
const waiting = new Set();
/** @type {((topic: string) => void)[]} */
const hearers = [];
/** @type {EventSource | null} */
let source = null;
let leads = false, paused = false, fetching = false, heard = Date.now(), asked = "";

/** Call `tell` with each topic that is dirty. @param {(topic: string) => void} tell */
export const hear = (tell) => hearers.push(tell);
const mine = () => [...new Set(all("[data-live], fl-log[data-topic]").flatMap((each) => (each.dataset.live ?? each.dataset.topic ?? "").split(" ").filter(Boolean)))];

/** @param {"on" | "off" | "paused"} state */
function badge(state) {
  const badge = one("#live");
  if (!badge) return;
  badge.hidden = false;
  badge.dataset.state = paused ? "paused" : state;
  /** @type {HTMLElement} */ (badge.lastElementChild).textContent = paused ? "Paused" : state === "on" ? "Live" : "Reconnecting";
}

export function pause() {
  paused = !paused;
  badge(Date.now() - heard < POLL ? "on" : "off");
  if (!paused) dirty(mine());
}

/** @param {string[]} topics */
function dirty(topics) {
  for (const topic of topics) for (const tell of hearers) tell(topic);
  for (const region of all("[data-live]")) {
    if (region.dataset.live?.split(" ").some((topic) => topics.includes(topic))) waiting.add(region.id);
  }
  void refresh();
}

/** What this page shows is no longer true: somebody has just changed it here. */
export const stale = () => dirty(mine());

/** Fetch what is dirty; one request at a time, none while nobody looks. */
export async function refresh() {
  if (fetching || paused || document.hidden || !waiting.size) return;
  fetching = true;
  const names = [...waiting].sort().join(",");
  waiting.clear();
  try {
    const answer = await fetch(location.href, { headers: { "X-Fragment": names, "If-None-Match": tags.get(names) ?? "" } });
    if (answer.status === 401) location.reload();
    if (answer.status === 200) {
      tags.set(names, answer.headers.get("etag") ?? "");
      place(parsed(await answer.text()));
    } else if (answer.status >= 429) throw new Error("not now");
  } catch {
    // What is shown is no longer true, and nobody may say so again: the next beat tries anew.
    for (const name of names.split(",")) waiting.add(name);
    fetching = false;
    return;
  }
  fetching = false;
  if (waiting.size) void refresh();
}

/** @param {Document} fresh */
export function place(fresh) {
  for (const part of [...fresh.body.children]) {
    const old = document.getElementById(part.id);
    if (!old) continue;
    document.dispatchEvent(new CustomEvent("fl:before", { detail: { old, fresh: part } }));
    morph(old, part);
  }
  document.dispatchEvent(new Event("fl:after"));
}

function announce() { channel.postMessage({ from: me, topics: mine() }); }

/** @param {{from?: string, topics?: string[], dirty?: string[], on?: boolean, who?: boolean, bye?: boolean, left?: boolean}} said */
function take(said) {
  if (said.who) announce();
  if (said.left && said.from) tabs.delete(said.from);
  if (said.from && said.topics) { tabs.set(said.from, { topics: said.topics, at: Date.now() }); if (leads) connect(); }
  if (said.on) { heard = Date.now(); badge("on"); }
  if (said.dirty) dirty(said.dirty);
  if (said.bye) location.reload();
}

/** @param {object} said */
function tell(said) { channel.postMessage(said); take(said); }

/** Open the stream for what all tabs show; again when that has grown. */
function connect() {
  const topics = [...new Set([...mine(), ...[...tabs.values()].flatMap((tab) => tab.topics)])].sort().slice(0, 40).join(",");
  if (!topics || (topics === asked && source?.readyState !== EventSource.CLOSED)) return;
  asked = topics;
  source?.close();
  source = new EventSource(`${document.body.dataset.events}?topics=${encodeURIComponent(topics)}`);
  source.addEventListener("open", () => tell({ on: true }));
  source.addEventListener("dirty", (event) => tell({ on: true, dirty: JSON.parse(event.data).topics }));
  source.addEventListener("bye", () => { source?.close(); tell({ bye: true }); });
  source.addEventListener("error", () => { if (source?.readyState === EventSource.CLOSED) asked = ""; });
}

function beat() {
  if (leads && source?.readyState === EventSource.OPEN) tell({ on: true });
  if (leads) connect();
  if (Date.now() - heard > POLL) { badge("off"); dirty(mine()); }
  void refresh();
}

if (document.body.hasAttribute("data-in") && mine().length) {
  channel.onmessage = (event) => take(event.data);
  document.addEventListener("visibilitychange", () => void refresh());
  addEventListener("pagehide", () => { source?.close(); channel.postMessage({ from: me, left: true }); });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  setInterval(beat, 2000);
  announce();
  navigator.locks?.request("fairlane-live", () => {
    leads = true;
    channel.postMessage({ who: true });
    connect();
    return new Promise(() => {});
  });
}
