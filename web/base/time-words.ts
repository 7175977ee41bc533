/** Formats times as people say them: "5 min ago", "in 4 min", "21 Nov, 14:02". A title always shows the exact time with its zone. */
import { useEffect, useState } from "preact/hooks";
import { formatSpan, formatTimeLeft } from "../../src/base/shared/time-span.ts";
import { makeCell } from "./cell.ts";
import { serviceNow } from "./service-clock.ts";

const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Returns the service's time in milliseconds since the epoch and renders again every `everyMs`. */
export function useNow(everyMs = 5000): number {
  const [now, setNow] = useState(serviceNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Formats "just now", "5 min ago", "in 2 h", or a date after four weeks. */
export function formatWhen(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  const span = Math.abs(ms);
  if (!Number.isFinite(ms)) return iso;
  if (span < 5 * SECOND_MS) return "just now";
  if (span > 28 * DAY_MS) return formatIn("date", new Date(iso));
  return ms < 0 ? `${formatSpan(span)} ago` : `in ${formatTimeLeft(span)}`;
}

type Zone = "local" | "utc";

const KEPT_AS = "relay.zone";

/** Zone of all shown times: this machine's or UTC. The browser stores the choice. */
export const timeZone = makeCell<Zone>(recallZone());

function recallZone(): Zone {
  try {
    return localStorage.getItem(KEPT_AS) === "utc" ? "utc" : "local";
  } catch {
    return "local";
  }
}

export function chooseZone(zone: Zone): void {
  timeZone.set(zone);
  try {
    localStorage.setItem(KEPT_AS, zone);
  } catch {
    // The choice lasts until the page unloads if there is no storage.
  }
}

type Shape = "exact" | "clock" | "short" | "short with day" | "short with year" | "day" | "date" | "name";

/** A 24-hour clock in every language, because the times of logs and messages have one. */
const HOUR_CYCLE = "h23";
const SHORT = { hour: "2-digit", minute: "2-digit", hourCycle: HOUR_CYCLE } as const;

const SHAPES: Record<Shape, Intl.DateTimeFormatOptions> = {
  exact: { dateStyle: "medium", timeStyle: "medium", hourCycle: HOUR_CYCLE },
  clock: { timeStyle: "medium", hourCycle: HOUR_CYCLE },
  short: SHORT,
  "short with day": { day: "numeric", month: "short", ...SHORT },
  "short with year": { year: "numeric", month: "short", day: "numeric", ...SHORT },
  date: { dateStyle: "medium" },
  day: { year: "numeric", month: "2-digit", day: "2-digit" },
  name: { timeZoneName: "short" },
};
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(shape: Shape, zone: Zone): Intl.DateTimeFormat {
  const key = `${zone} ${shape}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat(
    undefined,
    zone === "utc" ? { ...SHAPES[shape], timeZone: "UTC" } : SHAPES[shape],
  );
  formats.set(key, made);
  return made;
}

function formatIn(shape: Shape, date: Date, zone = timeZone.get()): string {
  return formatOf(shape, zone).format(date);
}

/** Returns "CET", "GMT+1" or "UTC" for the given date, because the zone differs between summer and winter. */
export function zoneName(zone: Zone = timeZone.get(), date = new Date()): string {
  const parts = formatOf("name", zone).formatToParts(date);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "UTC";
}

/** Reports whether this machine's zone differs from UTC. */
export function isAwayFromUtc(): boolean {
  return !["UTC", "GMT"].includes(zoneName("local"));
}

/** Formats the full time in both zones: "21 Nov 2026, 08:14:05 CET · 07:14:05 UTC". */
export function formatFullTime(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const chosen = timeZone.get();
  const other = chosen === "utc" ? "local" : "utc";
  const text = `${formatIn("exact", date)} ${isAwayFromUtc() ? zoneName(chosen, date) : "UTC"}`;
  return isAwayFromUtc() ? `${text} · ${formatIn("clock", date, other)} ${zoneName(other, date)}` : text;
}

export function formatClock(iso: string): string {
  return `${formatIn("clock", new Date(iso))}${zoneBehind()}`;
}

/** Formats a short time: "03:12" for today, "21 Nov, 03:12" for this year. `dated` always adds the day. Adds UTC if the machine's zone differs. */
export function formatMoment(iso: string, now: number, { dated = false } = {}): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const today = new Date(now);
  const isNear =
    date.getUTCFullYear() === today.getUTCFullYear() || Math.abs(now - date.getTime()) < 28 * DAY_MS;
  const isToday = !dated && formatIn("day", date) === formatIn("day", today);
  const shape = isToday ? "short" : isNear ? "short with day" : "short with year";
  return `${formatIn(shape, date)}${zoneBehind()}`;
}

function zoneBehind(): string {
  return timeZone.get() === "utc" && isAwayFromUtc() ? " UTC" : "";
}

/** Pattern of a time in the service's messages: "2026-11-21T09:03:00.000Z" or "2026-11-21 09:03 UTC". */
export const SAID_TIME = String.raw`\d{4}-\d\d-\d\d(?:T\d\d:\d\d:[\d.]+Z| \d\d:\d\d UTC)`;

const IS_SAID_TIME = new RegExp(`^${SAID_TIME}$`);

/** Converts a time of a message to ISO, or returns null. */
export function readMoment(text: string): string | null {
  if (!IS_SAID_TIME.test(text)) return null;
  return text.endsWith(" UTC") ? `${text.slice(0, 10)}T${text.slice(11, 16)}:00.000Z` : text;
}

/** Replaces the times in a message of the service for use in titles. The component `Sentence` does this itself. */
export function formatTimesIn(sentence: string, now: number): string {
  return sentence.replaceAll(new RegExp(SAID_TIME, "g"), (text) =>
    formatMoment(readMoment(text) ?? text, now),
  );
}
