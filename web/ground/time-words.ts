/** Times in words, as people say them: "5 min ago", "in 4 min", "Monday 14:02:11". The exact time is always given beside, as a title. */
import { useEffect, useState } from "preact/hooks";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds since the epoch, and again every `everyMs`. */
export function useNow(everyMs = 5000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** "just now", "5 min ago", "in 2 h"; from four weeks on a date. */
export function sayWhen(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  const span = Math.abs(ms);
  if (!Number.isFinite(ms)) return iso;
  if (span < 5 * SECOND) return "just now";
  if (span > 28 * DAY) return new Date(iso).toLocaleDateString(undefined, { dateStyle: "medium" });
  const words = saySpan(span);
  return ms < 0 ? `${words} ago` : `in ${words}`;
}

/** "800 ms", "12 s", "5 min", "3 h", "2 days". */
export function saySpan(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  const days = Math.floor(ms / DAY);
  return days === 1 ? "1 day" : `${days} days`;
}

/** The whole time, where the reader is: "21 Nov 2026, 08:14:05". */
export function sayExactly(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? iso
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function sayClock(iso: string): string {
  return new Date(iso).toLocaleTimeString(undefined, { timeStyle: "medium" });
}

/** Short, where the reader is: "03:12" of today, "21 Nov, 03:12" before. */
export function sayMoment(iso: string, now: number): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const isToday = date.toDateString() === new Date(now).toDateString();
  const day = isToday ? {} : ({ day: "numeric", month: "short" } as const);
  return date.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
}

/** A sentence of the service with its times as the reader says them. */
export function sayTimesIn(sentence: string, now: number): string {
  return sentence.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z/g, (iso) => sayMoment(iso, now));
}
