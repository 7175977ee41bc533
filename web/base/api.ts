/**
 * Calls the public API, with the session's cookie and nothing else. A refusal is thrown as an ApiError that carries the service's own
 * sentence; a lost session is told to whoever watches `signedOut`. It never retries and never guesses an outcome.
 */
import type { Problem } from "../../src/base/refusal.ts";
import { makeCell } from "./cell.ts";
import { parseExact, writeExact } from "./exact-json.ts";
import { hearTime, serviceNow } from "./service-clock.ts";

export class ApiError extends Error {
  /** 0: the service was not reached. */
  readonly status: number;
  readonly code: string;
  readonly problems: readonly Problem[];
  constructor(status: number, code: string, message: string, problems: readonly Problem[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.problems = problems;
  }
}

/** JSON text that is sent as it stands, so that what a person typed arrives exactly. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Counts the calls that were refused for want of a session. */
export const signedOut = makeCell(0);

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The answer's value; undefined where there is none. `path` is whole, such as `/api/session`; a blob is sent as it is, as JSON lines where it says no type. */
export async function call<Answer>(
  method: Method,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  const init: RequestInit = { method, headers: { accept: "application/json" }, credentials: "same-origin" };
  if (signal !== undefined) init.signal = signal;
  if (body !== undefined) {
    const isRaw = body instanceof Blob;
    init.headers = {
      accept: "application/json",
      "content-type": isRaw ? body.type || "application/x-ndjson" : "application/json",
    };
    init.body = isRaw ? body : body instanceof RawJson ? body.text : writeExact(body);
  }
  const response = await reach(path, init);
  if (method === "GET") noteServed(response);
  const text = await response.text();
  if (!response.ok) throw readError(response.status, text);
  const answer = text === "" ? undefined : parseExact(text);
  if (typeof answer === "object" && answer !== null) texts.set(answer, text);
  return answer as Answer;
}

/** What each answer was read from. */
const texts = new WeakMap<object, string>();

/** Whether two answers say the same. */
export function isSameAnswer(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  const text = texts.get(one);
  return one === other || (text !== undefined && text === texts.get(other));
}

/** Whether the service answered the last call; a proxy that answers for it says that it is away. */
export const reached = makeCell(true);
let heardAt = serviceNow();

/** When the service was last heard, by its clock. */
export function lastHeardAt(): number {
  return heardAt;
}

/** The service said something. */
export function hear(): void {
  heardAt = serviceNow();
  reached.set(true);
}

/** Since when the service answers, but with 503 alone, as without its database; null: it serves. */
export const unservedSince = makeCell<string | null>(null);
let servedAt = serviceNow();

function noteServed({ ok, status }: Response): void {
  if (ok) {
    servedAt = serviceNow();
    unservedSince.set(null);
  } else if (status === 503 && unservedSince.get() === null)
    unservedSince.set(new Date(servedAt).toISOString());
}

/** Statuses by which a proxy says that nobody is behind it. */
const AWAY = [502, 504];

async function reach(path: string, init: RequestInit): Promise<Response> {
  const askedAt = Date.now();
  try {
    const response = await fetch(path, init);
    if (AWAY.includes(response.status)) reached.set(false);
    else {
      hearTime(response.headers.get("date"), askedAt);
      hear();
    }
    return response;
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    reached.set(false);
    throw new ApiError(
      0,
      "unreachable",
      "The service cannot be reached: check that it is running and that this machine is online.",
    );
  }
}

function readError(status: number, text: string): ApiError {
  let body: { code?: string; message?: string; problems?: Problem[]; resetAt?: string } = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // What is not JSON did not come from the service itself; its status has to do.
  }
  const {
    code = "unknown",
    message = AWAY.includes(status)
      ? `A proxy answered ${status} in the service’s place: check that the service is running, and wait where it is starting.`
      : `The service answered ${status} without a reason.`,
    problems = [],
  } = body;
  if (code === "unauthenticated") signedOut.set(signedOut.get() + 1);
  return new ApiError(status, code, message, problems);
}

/** A query string of the fields that say something, with its question mark; empty where none does. */
export function writeQuery(fields: Readonly<Record<string, string | number | null | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** The sentence of any thrown thing. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
