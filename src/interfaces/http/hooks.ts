/**
 * The route of receivers. It reads the bytes, at most 256 KB and only for a receiver that exists, passes them to the receiver, and renders its
 * response. It is the hot path: a request uses no schema, no parser and no hook of the framework.
 */
import type { BunRequest } from "bun";
import { Elysia } from "elysia";
import { MAX_RECEIVER_BODY_BYTES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { rejectLargeBody } from "../../engine/receiver/rejection.ts";
import { isCaptureName } from "../../engine/receiver/request-capture.ts";
import { HandshakeAnswer } from "../../rules/verify/handshake.ts";
import { requireOneReading, type SourceReader } from "./address.ts";
import { answerError, type RefusedCalls } from "./answer.ts";
import { readBytes } from "./body.ts";
import type { HttpDeps } from "./deps.ts";
import type { Pipelines } from "./pipeline.ts";

export const HOOKS = "/hooks/:appId/:name";

type HookDeps = HttpDeps & {
  sources: Pick<SourceReader, "looksAtUnasked" | "of">;
  refused: RefusedCalls;
};

/**
 * Creates the routes by which a sender asks for the URL with GET or HEAD when it registers it. `answerElse` answers when no relay has such a
 * handshake.
 */
export function hooksRoute(
  deps: HookDeps,
  pipelines: Pipelines,
  answerElse: (request: Request) => Promise<Response>,
) {
  const ask = (request: Request, params: { appId: string; name: string }) =>
    pipelines.bound(request, async () => {
      try {
        requireOneReading(request, params);
        if (isCaptureName(params.name))
          return (await capture(deps, request, params)) ?? (await answerElse(request));
        return (await answerQuestion(deps, request, params)) ?? (await answerElse(request));
      } catch (error) {
        return answerError(deps, request, error);
      }
    });
  return new Elysia({ name: "hooks" })
    .get(HOOKS, ({ request, params }) => ask(request, params), { parse: "none" })
    .head(HOOKS, ({ request, params }) => ask(request, params), { parse: "none" });
}

/** Answers `POST /hooks/:appId/:name` without the framework, which would create a context for each request. */
export function takeCalls(deps: HookDeps): (request: BunRequest) => Promise<Response> {
  return (request) => {
    const { appId = "", name = "" } = request.params as Record<string, string>;
    return answerCall(deps, request, { appId, name });
  };
}

async function answerQuestion(
  { receiver, sources, refused }: HookDeps,
  request: Request,
  { appId, name }: { appId: string; name: string },
): Promise<Response | null> {
  const answer = await receiver.ask({
    appId,
    name,
    method: request.method === "HEAD" ? "HEAD" : "GET",
    search: appendedTo(`/hooks/${appId}/${name}`, request.url),
    source: () => sources.of(request),
  });
  if (answer === null) return null;
  return answer instanceof Refusal ? refused.answer(request, answer) : writeHandshake(answer);
}

/** Writes the body as text, so that no browser renders it as a page. */
function writeHandshake({ body, contentType, status }: HandshakeAnswer): Response {
  const headers = {
    "content-type": contentType,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'",
    "cache-control": "no-store",
  };
  return new Response(status === 204 ? null : body, { status, headers });
}

/** Answers a request to the receiver in the path. The receiver judges what was appended to the path. Never throws. */
async function answerCall(
  deps: HookDeps,
  request: Request,
  { appId, name }: { appId: string; name: string },
): Promise<Response> {
  const { receiver, bodies, sources, refused } = deps;
  let known: string | null = null;
  const from = (): string => {
    known ??= sources.of(request);
    return known;
  };
  try {
    requireOneReading(request, { appId, name });
    if (isCaptureName(name)) {
      const captured = await capture(deps, request, { appId, name });
      return captured ?? refused.answer(request, await receiver.rejectCapture(from()));
    }
    const looked = receiver.rejectUnknownReceiver(appId, name, from);
    const unknown = looked instanceof Promise ? await looked : looked;
    if (unknown !== null) return refused.answer(request, unknown);
    let body: Uint8Array;
    try {
      body = await readBytes(request, MAX_RECEIVER_BODY_BYTES, { room: bodies, source: from });
    } catch (error) {
      throw error instanceof Refusal ? await receiver.rejectUnread(appId, name, from(), error) : error;
    }
    const answer = await receiver.receive({
      appId,
      name,
      headers: request.headers,
      body,
      search: appendedTo(`/hooks/${appId}/${name}`, request.url),
      source: from,
    });
    if (answer instanceof Refusal) return refused.answer(request, answer);
    if (answer instanceof HandshakeAnswer) return writeHandshake(answer);
    if (sources.looksAtUnasked) from();
    return Response.json(answer, ANSWERED);
  } catch (error) {
    return answerError(deps, request, error);
  }
}

/** Stores a request to the URL of a capture. A GET or HEAD has no body and gets none. null: there is no such capture, or it takes no request. */
async function capture(
  { receiver, captures, bodies, sources, refused }: HookDeps,
  request: Request,
  { appId, name }: { appId: string; name: string },
): Promise<Response | null> {
  const id = captures.find(appId, name);
  if (id === null) return null;
  const source = (): string => sources.of(request);
  const isPost = request.method === "POST";
  let body: Uint8Array = new Uint8Array();
  try {
    if (isPost) body = await readBytes(request, MAX_RECEIVER_BODY_BYTES, { room: bodies, source });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "body_too_large") throw error;
    return refused.answer(request, await receiver.rejectCapture(source(), rejectLargeBody()));
  }
  const capped = await receiver.takeCaptured(source());
  if (capped !== null) return refused.answer(request, capped);
  const search = appendedTo(`/hooks/${appId}/${name}`, request.url);
  const isTaken = await captures.take(id, { method: request.method, search, headers: request.headers, body });
  if (!isTaken) return null;
  return isPost ? Response.json({ received: true }, ANSWERED) : writeHandshake(new HandshakeAnswer(""));
}

const ANSWERED: ResponseInit = { headers: new Headers({ "cache-control": "no-store" }) };

/** Returns what was appended to the receiver's path: a query string, a bare "?" or a slash. */
function appendedTo(path: string, url: string): string {
  // The search starts after the Host, which can contain "hooks" too. A URL with an invalid Host starts with the path.
  const at = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);
  return url.startsWith(path, at) ? url.slice(at + path.length) : url;
}
