/**
 * What the service tells by itself: one stream of changes for the environment that is shown, which says what of the page is out of date. A
 * hidden tab closes it. While there is none the page asks by its clock; while the service is away it says since when what it shows is from.
 */
import type { ChangeKind } from "../../src/platform/audit/live-changes.ts";
import { call, hear, lastHeardAt, reached } from "./api.ts";
import { makeCell } from "./cell.ts";
import { outdate, relyOn } from "./loaded.ts";

type Liveness =
  /** The service tells what changes. */
  | { kind: "live" }
  /** The page asks every few seconds. */
  | { kind: "asking" }
  /** The service cannot be reached; what is shown is from before. */
  | { kind: "away"; since: string };

export const liveness = makeCell<Liveness>({ kind: "asking" });

/** What each kind of change is seen in: first parts of addresses below the environment's; `audit` may be anything. */
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
/** What changes only as the stream tells it; everything else is asked for as often as before. */
const TOLD = ["events", "overview", "relays", "calls", "problems", "alerts", "bulk-replays"];
const OVERVIEW = "/api/overview";

/** The service says that it is there every 15 seconds. */
const SILENT_MS = 40_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

/** `/api/apps/<app>/<environment>` of what is shown; null: none. */
let place: string | null = null;
let source: EventSource | null = null;
let retryMs = FIRST_RETRY_MS;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
/** Whether a stream was open before: what changed since is not known. */
let isResumed = false;

/** Follows the environment of this address of the API, and no other any more. */
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
  opened.onerror = () => lose();
}

function begin(): void {
  retryMs = FIRST_RETRY_MS;
  liveness.set({ kind: "live" });
  relyOn((path) => path === OVERVIEW || TOLD.includes(partOf(path) ?? ""));
  if (isResumed) outdate(() => true);
  isResumed = true;
}

function watchSilence(): void {
  clearTimeout(silence);
  silence = setTimeout(lose, SILENT_MS);
}

function close(): void {
  clearTimeout(silence);
  clearTimeout(retry);
  source?.close();
  source = null;
  relyOn(() => false);
  if (liveness.get().kind === "live") liveness.set({ kind: "asking" });
}

/** The stream ended: whether the service is away, or tells nothing, is asked for; then again, ever less often. */
function lose(): void {
  close();
  if (place !== null) call("GET", `${place}/problems?limit=1`).catch(() => undefined);
  retry = setTimeout(open, retryMs * (0.75 + Math.random() / 2));
  retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
}

/** The first part of an address below the environment that is followed; null where it is another's. */
function partOf(path: string): string | null {
  if (place === null || !path.startsWith(`${place}/`)) return null;
  return path.slice(place.length + 1).split(/[/?]/, 1)[0] ?? null;
}

/** Where relays are only named, as in a choice, nobody follows how each of them does. */
function isSeenAt(kind: ChangeKind, path: string, isFollowed: boolean): boolean {
  if (path === OVERVIEW) return SEEN_IN[kind]?.includes("overview") ?? true;
  if (!isFollowed && path.startsWith(`${place}/relays?`)) return kind === "relay";
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
