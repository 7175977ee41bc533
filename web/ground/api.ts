/**
 * Calls the public API, with the session's cookie and nothing else. A refusal is thrown as an ApiError that carries the service's own
 * sentence; a lost session is told to whoever watches `signedOut`. It never retries and never guesses an outcome.
 */
import type { Problem } from "../../src/ground/refusal.ts";
import { makeCell } from "./cell.ts";
import { parseExact, writeExact } from "./exact-json.ts";

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

/** The answer's value; undefined where there is none. `path` is whole, such as `/api/session`; a blob is sent as it is. */
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
      "content-type": isRaw ? "application/x-ndjson" : "application/json",
    };
    init.body = isRaw ? body : body instanceof RawJson ? body.text : writeExact(body);
  }
  const response = await reach(path, init);
  const text = await response.text();
  if (response.ok) return (text === "" ? undefined : parseExact(text)) as Answer;
  throw readError(response.status, text);
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
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
    message = `The service answered ${status} without a reason.`,
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
