/**
 * Client of the public API, which sends only the session's cookie. It throws a rejection as an ApiError with the
 * service's message. It never guesses an outcome, and repeats a call only after the person confirmed who they are.
 */
import type { Problem } from "../../src/base/refusal.ts";
import type { AuthenticationMethod } from "../../src/platform/account/authentication.ts";
import { makeCell } from "./cell.ts";
import { askConfirmation } from "./confirmation.ts";
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

/** JSON text that is sent unchanged, so that the user's input arrives exactly. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Counts signs that the session or its permissions changed: a rejected request, or the end of a stream. The session is then loaded again. */
export const accessChanged = makeCell(0);

export function recordAccessChange(): void {
  accessChanged.set(accessChanged.get() + 1);
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Returns the response's value, or undefined if it has none. `path` is complete, such as `/api/session`. A blob is sent
 * unchanged, as JSON lines if it has no type.
 */
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
  let { response, text } = await send(method, path, init);
  if (response.status === 403 && signal?.aborted !== true) {
    const { code, methods } = readBody(text);
    if (code === "reauthentication_required") {
      if (!(await askConfirmation(methods ?? [])))
        throw new ApiError(403, code, "Nothing was changed, because you did not confirm that it is you.");
      ({ response, text } = await send(method, path, init));
    }
  }
  if (!response.ok) throw readError(response.status, text);
  const answer = text === "" ? undefined : parseExact(text);
  if (typeof answer === "object" && answer !== null) texts.set(answer, text);
  return answer as Answer;
}

async function send(
  method: Method,
  path: string,
  init: RequestInit,
): Promise<{ response: Response; text: string }> {
  const response = await reach(path, init);
  if (method === "GET") recordServed(response);
  return { response, text: await response.text() };
}

/** Response text of each value. */
const texts = new WeakMap<object, string>();

/** Reports whether two responses have the same text. */
export function isSameAnswer(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  const text = texts.get(one);
  return one === other || (text !== undefined && text === texts.get(other));
}

/** True if the service answered the last call. A proxy's error page counts as unreachable. */
export const reached = makeCell(true);
let heardAt = serviceNow();

/** Returns when the service last answered, by the service's clock. */
export function lastHeardAt(): number {
  return heardAt;
}

/** Records that the service answered. */
export function hear(): void {
  heardAt = serviceNow();
  reached.set(true);
}

/** Time since which the service answers only with 503, for example without its database; null while it serves. */
export const unservedSince = makeCell<string | null>(null);
let servedAt = serviceNow();

function recordServed({ ok, status }: Response): void {
  if (ok) {
    servedAt = serviceNow();
    unservedSince.set(null);
  } else if (status === 503 && unservedSince.get() === null)
    unservedSince.set(new Date(servedAt).toISOString());
}

/** Statuses with which a proxy says that the service is away. */
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
      "The service cannot be reached. Check that it is running and that this machine is online.",
    );
  }
}

interface ErrorBody {
  code?: string;
  message?: string;
  problems?: Problem[];
  methods?: AuthenticationMethod[];
}

/** Reads the body of a rejection. A body that is not JSON came from a proxy, so only its status counts. */
function readBody(text: string): ErrorBody {
  try {
    return JSON.parse(text) as ErrorBody;
  } catch {
    return {};
  }
}

function readError(status: number, text: string): ApiError {
  const {
    code = "unknown",
    message = AWAY.includes(status)
      ? `A proxy answered ${status} instead of the service. Check that the service is running. If it is starting, wait.`
      : `The service answered ${status} without a reason.`,
    problems = [],
  } = readBody(text);
  if (code === "unauthenticated" || code === "forbidden") recordAccessChange();
  return new ApiError(status, code, message, problems);
}

/** Returns a query string of the non-empty fields, with its question mark, or an empty text. */
export function writeQuery(fields: Readonly<Record<string, string | number | null | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** Returns the message of any thrown value. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
