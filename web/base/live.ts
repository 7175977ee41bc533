/**
 * Follows the service's stream of changes for the shown environment and marks outdated data. A hidden tab closes the stream. The page polls if it has
 * no stream. While the service is away, the page says how old its data is.
 */
import type { ChangeKind } from "../../src/platform/audit/live-changes.ts";
import { call, hear, lastHeardAt, reached, recordAccessChange } from "./api.ts";
import { makeCell } from "./cell.ts";
import { outdate, relyOn } from "./loaded.ts";

type Liveness =
  /** The service streams changes. */
  | { kind: "live" }
  /** The page polls every few seconds. */
  | { kind: "asking" }
  /** The service cannot be reached, so the data is old. */
  | { kind: "away"; since: string };

export const liveness = makeCell<Liveness>({ kind: "asking" });

/** Maps a kind of change to the addresses that show it: first parts below the environment's address. null: any address. */
const SEEN_IN: Record<ChangeKind, readonly string[] | null> = {
  event: [
    "events",
    "overview",
    "relays",
    "calls",
    "persons",
    "collections",
    "mail",
    "problems",
    "alerts",
    "bulk-replays",
    "url-times",
  ],
  call: ["calls", "unknown-calls", "overview", "relays"],
  record: ["collections", "persons"],
  relay: ["relays", "overview", "problems", "alerts"],
  problem: ["problems", "alerts", "overview", "relays"],
  alert: ["problems", "alerts", "overview"],
  bulk_replay: ["bulk-replays", "events", "overview"],
  setting: null,
  audit: null,
};
/** Addresses that change only with the stream. All others are polled at their usual pace. */
const TOLD = ["events", "overview", "relays", "calls", "problems", "alerts", "bulk-replays", "url-times"];
const OVERVIEW = "/api/overview";

/** The service sends a sign of life every 15 seconds. */
const SILENT_MS = 40_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

/** `/api/apps/<app>/<environment>` of the shown environment, or null. */
let place: string | null = null;
let source: EventSource | null = null;
let retryMs = FIRST_RETRY_MS;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
/** True if an earlier stream was open. Changes since then are unknown. */
let isResumed = false;

/** Follows the environment at this API address, and only this one. */
export function follow(path: string | null): void {
  if (path === place) return;
  place = path;
  isResumed = false;
  retryMs = FIRST_RETRY_MS;
  close();
  open();
}

function open(): void {
  clearTimeout(retry);
  if (place === null || source !== null || document.hidden) return;
  const opened = new EventSource(`${place}/stream`);
  source = opened;
  opened.onmessage = ({ data }) => {
    hear();
    watchSilence();
    if (liveness.get().kind !== "live") begin();
    const { changed } = JSON.parse(data) as { changed: ChangeKind[] };
    if (changed.length > 0)
      outdate((path, isFollowed) => changed.some((kind) => isSeenAt(kind, path, isFollowed)));
  };
  opened.onerror = () => handleEnd();
}

function begin(): void {
  retryMs = FIRST_RETRY_MS;
  liveness.set({ kind: "live" });
  relyOn((path) => path === OVERVIEW || TOLD.includes(partOf(path) ?? ""));
  if (isResumed) {
    outdate(() => true);
    recordAccessChange();
  }
  isResumed = true;
}

function watchSilence(): void {
  clearTimeout(silence);
  silence = setTimeout(handleEnd, SILENT_MS);
}

function close(): void {
  clearTimeout(silence);
  clearTimeout(retry);
  source?.close();
  source = null;
  relyOn(() => false);
  if (liveness.get().kind === "live") liveness.set({ kind: "asking" });
}

/**
 * Handles the end of the stream. A change of the person's role ends it too. One call finds out whether the service is away. Then the stream is opened
 * again, with growing delays.
 */
function handleEnd(): void {
  close();
  if (isResumed) recordAccessChange();
  if (place !== null) call("GET", `${place}/events?limit=1`).catch(() => undefined);
  retry = setTimeout(open, retryMs * (0.75 + Math.random() / 2));
  retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
}

/** Returns the first part of an address below the followed environment, or null for another environment. */
function partOf(path: string): string | null {
  if (place === null || !path.startsWith(`${place}/`)) return null;
  return path.slice(place.length + 1).split(/[/?]/, 1)[0] ?? null;
}

/** A list that only names relays, such as a choice, does not depend on their health. */
function isSeenAt(kind: ChangeKind, path: string, isFollowed: boolean): boolean {
  if (path === OVERVIEW) return SEEN_IN[kind]?.includes("overview") ?? true;
  if (!isFollowed && path.startsWith(`${place}/relays?`)) return kind === "relay";
  // The chart of events also counts rejected requests.
  if (kind === "call" && path.startsWith(`${place}/events/histogram`)) return true;
  const part = partOf(path);
  return part !== null && (SEEN_IN[kind]?.includes(part) ?? true);
}

function showReached(): void {
  if (!reached.get()) liveness.set({ kind: "away", since: new Date(lastHeardAt()).toISOString() });
  if (!reached.get() || liveness.get().kind !== "away") return;
  liveness.set({ kind: "asking" });
  retryMs = FIRST_RETRY_MS;
  open();
}

export function startLive(): void {
  reached.watch(showReached);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("online", () => open());
}
