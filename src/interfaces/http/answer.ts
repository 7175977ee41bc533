/**
 * Makes answers, with the headers that each carries against framing, sniffing, leaking and injected script: JSON that keeps every integer
 * exactly, plain text, and in this one place errors: a refusal as `{code, message}` with what belongs to it, a store that cannot be used as
 * 503 not_recorded, and anything else as 500 internal, logged with its stack, of which the caller sees nothing.
 */
import { toIso } from "../../base/clock.ts";
import { writeJson } from "../../base/json.ts";
import { capProblems, Refusal } from "../../base/refusal.ts";
import type { RefusalCode } from "../../base/refusal-code.ts";
import { StoreUnavailable } from "../../store/port.ts";
import { addressOf } from "./address.ts";
import { callerOf } from "./admission.ts";
import type { HttpDeps } from "./deps.ts";
import { loggedPath } from "./logged-path.ts";

const COMMON: Readonly<Record<string, string>> = {
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** For data: nothing in it may be shown or run as a page. */
export const DATA_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** For the dashboard: its own files and its own API, nothing inline and nothing from elsewhere. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
};

type ExtraHeaders = Readonly<Record<string, string>>;

const NO_STORE = { "cache-control": "no-store" };
const JSON_TYPE = "application/json; charset=utf-8";

/** A JSON answer; bigints are written as their digits. */
export function answerJson(status: number, value: unknown, extra: ExtraHeaders = {}): Response {
  return answer(status, writeJson(value), JSON_TYPE, extra);
}

/** A JSON answer that was written before. */
export function answerWritten(text: string): Response {
  return answer(200, text, JSON_TYPE, {});
}

export function answerText(status: number, text: string, extra: ExtraHeaders = {}): Response {
  return answer(status, text, "text/plain; charset=utf-8", extra);
}

/** 204, nothing to say. */
export function answerEmpty(extra: ExtraHeaders = {}): Response {
  return new Response(null, { status: 204, headers: { ...DATA_HEADERS, ...NO_STORE, ...extra } });
}

/** Sends a browser to another address. */
export function redirect(location: string): Response {
  return answerText(307, "", { location });
}

function answer(status: number, body: string, contentType: string, extra: ExtraHeaders): Response {
  const headers = { ...DATA_HEADERS, ...NO_STORE, "content-type": contentType, ...extra };
  return new Response(body, { status, headers });
}

/** The rest of such a body stays unread, so the connection cannot carry another call. */
const UNREAD: readonly RefusalCode[] = ["body_too_large", "body_capped", "body_slow"];

/** The answer to a thrown error. `say`: puts the refusal in other words. */
export function answerError(
  deps: HttpDeps,
  request: Request,
  error: unknown,
  say = (refusal: Refusal) => refusal,
): Response {
  const refusal = say(error instanceof Refusal ? error : explain(deps, request, error));
  const { text, init } = writeRefusal(deps, request, refusal);
  if (leavesBody(request)) init.headers.set("connection", "close");
  return new Response(text, init);
}

/** A body of this size has come whole with its head, or nearly so. */
const SMALL_BODY_BYTES = 65_536;

/** Whether a body stays unread that may still be on its way: kept open, its connection would hold up a stop until the wait for it is over. */
function leavesBody(request: Request): boolean {
  const length = request.headers.get("content-length");
  const isLong =
    length === null ? request.headers.has("transfer-encoding") : Number(length) > SMALL_BODY_BYTES;
  return isLong && !request.bodyUsed;
}

interface WrittenRefusal {
  text: string;
  init: { status: number; headers: Headers };
}

function writeRefusal(
  deps: HttpDeps,
  request: Request,
  { code, status, message, extra }: Refusal,
): WrittenRefusal {
  const body: Record<string, unknown> = { code, message };
  const headers = new Headers({ ...DATA_HEADERS, ...NO_STORE, "content-type": JSON_TYPE });
  if (mayReadDocs(request)) body.docs = `${docsUrl(deps)}/errors/${code}`;
  if (extra.problems !== undefined) body.problems = capProblems(extra.problems, "The request");
  if (extra.resetAtMs !== undefined) {
    body.resetAt = toIso(extra.resetAtMs);
    headers.set("retry-after", String(secondsUntil(deps, extra.resetAtMs)));
  }
  if (UNREAD.includes(code)) headers.set("connection", "close");
  if (code === "unauthenticated") headers.set("www-authenticate", "Bearer");
  if (code === "method_not_allowed") headers.set("allow", String(extra.details?.allow ?? ""));
  return { text: writeJson({ ...body, ...extra.details }), init: { status, headers } };
}

function secondsUntil({ clock }: HttpDeps, resetAtMs: number): number {
  return Math.max(1, Math.ceil((resetAtMs - clock.now()) / 1000));
}

/** Answers to receiver calls, which are refused with the same few values again and again: each is written once, and anew where its seconds pass. */
export class RefusedCalls {
  readonly #deps: HttpDeps;
  readonly #written = new WeakMap<Refusal, WrittenRefusal & { seconds: number }>();

  constructor(deps: HttpDeps) {
    this.#deps = deps;
  }

  answer(request: Request, refusal: Refusal): Response {
    const { resetAtMs } = refusal.extra;
    const seconds = resetAtMs === undefined ? 0 : secondsUntil(this.#deps, resetAtMs);
    let written = this.#written.get(refusal);
    if (written === undefined || written.seconds !== seconds) {
      written = { ...writeRefusal(this.#deps, request, refusal), seconds };
      this.#written.set(refusal, written);
    }
    if (!leavesBody(request)) return new Response(written.text, written.init);
    const headers = new Headers(written.init.headers);
    headers.set("connection", "close");
    return new Response(written.text, { status: written.init.status, headers });
  }
}

/** Base of the error pages: as configured, else this service's own. */
export function docsUrl(deps: HttpDeps): string {
  return deps.config.docsUrl ?? `${deps.baseUrl()}/docs`;
}

/** The page of a code, or null for a caller who is told of none. */
export function docsOf(deps: HttpDeps, request: Request, code: string): string | null {
  return mayReadDocs(request) ? `${docsUrl(deps)}/errors/${code}` : null;
}

/** `docs` is for those who build: a development key or an owner's session, never a live key and never a stranger. */
function mayReadDocs(request: Request): boolean {
  const caller = callerOf(request);
  if (caller === null || caller.kind === "command_line") return false;
  return (
    caller.kind === "owner" || (caller.key.kind === "secret" && caller.key.environmentName !== "production")
  );
}

/** The answer to an error that not even `answerError` was reached with. */
export function answerFault(deps: HttpDeps, error: unknown): Response {
  deps.log.error("A request failed.", { error });
  return answerJson(INTERNAL.status, { code: INTERNAL.code, message: INTERNAL.message });
}

const INTERNAL = new Refusal(
  "internal",
  "Something went wrong in the service itself: look at the server's log for this time.",
);

function explain(deps: HttpDeps, request: Request, error: unknown): Refusal {
  const fields = { method: request.method, path: loggedPath(addressOf(request).pathname), error };
  if (error instanceof StoreUnavailable) {
    deps.log.warn("The store could not be used.", fields);
    return new Refusal(
      "not_recorded",
      request.method === "GET"
        ? "The database cannot be used now: ask again in a moment; where it lasts, the server's log says why."
        : "The store cannot be used now, so nothing was recorded: send the request again.",
    );
  }
  deps.log.error("A request failed.", fields);
  return INTERNAL;
}
