/**
 * Creates responses with the headers against framing, sniffing, leaks and script injection. JSON preserves every integer exactly. All errors are
 * rendered here. A refusal becomes `{code, message}` with its details. An unavailable store becomes 503 not_recorded. Anything else becomes 500
 * internal, and only the log has its stack.
 */
import { toIso } from "../../base/clock.ts";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { writeJson } from "../../base/json.ts";
import { capProblems, Refusal } from "../../base/refusal.ts";
import { StoreUnavailable } from "../../store/port.ts";
import { addressOf } from "./address.ts";
import { callerOf } from "./caller.ts";
import type { HttpDeps } from "./deps.ts";
import { loggedPath } from "./logged-path.ts";

const COMMON: Readonly<Record<string, string>> = {
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Headers of data, which browsers must not show or run as a page. */
export const DATA_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** Headers of the dashboard, which may use its own files and its own API, but nothing inline and nothing external. */
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

/** Creates a JSON response. Bigints are written as digits. */
export function answerJson(status: number, value: unknown, extra: ExtraHeaders = {}): Response {
  return answer(status, writeJson(value), JSON_TYPE, extra);
}

/** Creates a JSON response from its text. */
export function answerWritten(text: string): Response {
  return answer(200, text, JSON_TYPE, {});
}

export function answerText(status: number, text: string, extra: ExtraHeaders = {}): Response {
  return answer(status, text, "text/plain; charset=utf-8", extra);
}

/** Creates an empty response with status 204. */
export function answerEmpty(extra: ExtraHeaders = {}): Response {
  return new Response(null, { status: 204, headers: { ...DATA_HEADERS, ...NO_STORE, ...extra } });
}

/** Redirects a browser to another address. */
export function redirect(location: string): Response {
  return answerText(307, "", { location });
}

function answer(status: number, body: string, contentType: string, extra: ExtraHeaders): Response {
  const headers = { ...DATA_HEADERS, ...NO_STORE, "content-type": contentType, ...extra };
  return new Response(body, { status, headers });
}

/** Codes of refusals that leave the rest of the body unread, so that the connection cannot carry another request. */
const UNREAD: readonly RefusalCode[] = ["body_too_large", "body_capped", "body_slow"];

/** Creates the response to a thrown error. `say` can replace the refusal with one in other words. */
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

/** A body of this size usually arrives together with its headers. */
const SMALL_BODY_BYTES = 65_536;

/** Returns true if an unread body may still be arriving. Such a connection must close, because it would delay a stop until its timeout. */
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

/**
 * Caches the responses to rejected requests of receivers, which have few distinct refusals. A response is created again when its number of
 * seconds changes.
 */
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

/** Returns the base URL of the error pages: the configured one, or this service's own. */
export function docsUrl(deps: HttpDeps): string {
  return deps.config.docsUrl ?? `${deps.baseUrl()}/docs`;
}

/** Returns the page of a code, or null for a caller who must not see documentation links. */
export function docsOf(deps: HttpDeps, request: Request, code: string): string | null {
  return mayReadDocs(request) ? `${docsUrl(deps)}/errors/${code}` : null;
}

/** Returns true for developers, who get `docs`: a development key or an owner's session. Live keys and strangers do not. */
function mayReadDocs(request: Request): boolean {
  const caller = callerOf(request);
  if (caller === null || caller.kind === "command_line") return false;
  return (
    caller.kind === "owner" || (caller.key.kind === "secret" && caller.key.environmentName !== "production")
  );
}

/** Creates the response to an error that `answerError` did not handle. */
export function answerFault(deps: HttpDeps, error: unknown): Response {
  deps.log.error("A request failed.", { error });
  return answerJson(INTERNAL.status, { code: INTERNAL.code, message: INTERNAL.message });
}

const INTERNAL = new Refusal(
  "internal",
  "An internal error occurred: look in the server's log at this time.",
);

function explain(deps: HttpDeps, request: Request, error: unknown): Refusal {
  const fields = { method: request.method, path: loggedPath(addressOf(request).pathname), error };
  if (error instanceof StoreUnavailable) {
    deps.log.warn("The store is not available.", fields);
    return new Refusal(
      "not_recorded",
      request.method === "GET"
        ? "The database is not available now: retry in a moment. If this continues, the server's log shows the cause."
        : "The store is not available now, so nothing was stored: send the request again.",
    );
  }
  deps.log.error("A request failed.", fields);
  return INTERNAL;
}
