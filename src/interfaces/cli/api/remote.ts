/**
 * Calls a server over HTTP with a key of one environment. target.ts decides which server. The command reports the server's refusals in the
 * server's words. It sends a key over plain http only to this machine, and it follows no redirect.
 */
import { sleep, systemClock } from "../../../base/clock.ts";
import { toRefusalCode } from "../../../base/code/refusal-code.ts";
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../../base/json.ts";
import { type Problem, Refusal } from "../../../base/refusal.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import { errorCode } from "../../../platform/outbound/error-code.ts";
import { CommandFailure, UsageError } from "../command.ts";
import { type Answered, Api, readAnswer, readObject, rejectOtherServer, type Sent } from "./api.ts";
import { recordAnswer, rejectOlder } from "./read-answer.ts";

const TIMEOUT_MS = 60_000;
const JSON_TYPE = "application/json";
const DECODER = new TextDecoder();

/** A server and the key for it. */
interface Asked {
  /** The server's origin, without a trailing slash. */
  url: string;
  key: string | null;
  /** The profile that names the server. It is null if the user gave an address or the service runs here. */
  profile: string | null;
  /** The time to wait for an answer, in milliseconds. Undefined means the usual time. */
  patienceMs?: number | undefined;
}

/** A server's API. Every request carries the key of its environment. */
export class Remote extends Api {
  readonly isLocal = false;
  readonly url: string;
  readonly origin: string;
  readonly key: string;
  readonly profile: string | null;
  readonly patienceMs: number | undefined;

  constructor(server: Asked & { key: string; app: string; environment: string }) {
    super(server.app, server.environment);
    this.url = server.url;
    this.origin = server.url;
    this.key = server.key;
    this.profile = server.profile;
    this.patienceMs = server.patienceMs;
  }

  protected send(sent: Sent): Promise<Answered> {
    return exchange(this, sent);
  }
}

/** The answer of `/api/key` about the key in the request. */
interface KeyAnswer {
  app: string;
  environment: string;
  owner: string | null;
  expiresAt: string | null;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Calls `fetch`, but bypasses a proxy (HTTP_PROXY) for a server on this machine. Such a proxy is another machine. It would read the key and
 * could not reach this server, and its own answer could pass for the server's.
 */
export function fetchFrom(url: string, init: RequestInit): Promise<Response> {
  const isHere = LOOPBACK.test(URL.parse(url)?.hostname ?? "");
  return fetch(url, { ...init, redirect: "manual", ...(isHere ? { proxy: false } : {}) });
}

/**
 * Returns the origin of a server. `where` names its source in errors. Throws UsageError for a text that is no origin, and for http to
 * another machine.
 */
export function readServerUrl(text: string, where = "--url"): string {
  const url = text.replace(/\/+$/, "");
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.origin !== url.toLowerCase())
    throw new UsageError(
      `${where} is ${JSON.stringify(text)}: write the server's origin, such as https://relay.example.com.`,
    );
  if (parsed.protocol === "http:" && !LOOPBACK.test(parsed.hostname))
    throw new UsageError(
      `${where} is an http address (${parsed.origin}), so others on the network could read the key: use https. Only this machine may use http.`,
    );
  return parsed.origin;
}

/** Finds the server at this address and the environment of the key. */
export async function findServer(
  text: string,
  key: string,
  where: string,
  patienceMs?: number,
): Promise<Remote> {
  const url = readServerUrl(text, where);
  if (key === "")
    throw new CommandFailure(
      "unauthenticated",
      `There is no key for ${url}: run relay login --url ${url} and name its profile with --profile. Or set RELAY_KEY to a secret key of the environment: relay keys create creates one on the server.`,
    );
  const bare = { url, key, profile: null, patienceMs };
  const { app, environment } = await askKey(bare).catch((error) => {
    throw explainKey(error, url);
  });
  return new Remote({ ...bare, app, environment });
}

/** Asks the server which environment and owner the key belongs to. Fails with `service_not_running` if no relay server answers. */
export async function askKey(remote: Asked): Promise<KeyAnswer> {
  const known = await askServer<Partial<KeyAnswer>>(remote, "GET", "/api/key");
  const { app, environment, owner, expiresAt } = { ...known };
  if (typeof app !== "string" || typeof environment !== "string") throw rejectOtherServer(remote.url, 200);
  return { app, environment, owner: owner ?? null, expiresAt: expiresAt ?? null };
}

/** Adds to an `unauthenticated` refusal, which addresses a program, where the key came from and how the user gets another. */
function explainKey(error: unknown, url: string): unknown {
  if (!(error instanceof Refusal) || error.code !== "unauthenticated") return error;
  return new Refusal(
    error.code,
    `${error.message} The key in RELAY_KEY or on standard input is unknown to ${url} or has expired: use another key, or run relay login --url ${url}.`,
  );
}

/**
 * Sends one request, and returns any answer. Fails with `service_not_running` if no answer comes. Follows no redirect, so the key goes
 * nowhere else.
 */
async function call(server: Asked, { method, path, body, mediaType }: Sent): Promise<Answered> {
  const { url, key, patienceMs = TIMEOUT_MS } = server;
  try {
    const headers = {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      "content-type": mediaType,
    };
    const signal = AbortSignal.timeout(patienceMs);
    const sent = body === null ? {} : { body: body as BodyInit };
    const answer = await fetchFrom(`${url}${path}`, { method, headers, signal, ...sent });
    recordAnswer(url);
    return { status: answer.status, headers: answer.headers, bytes: await answer.bytes() };
  } catch (error) {
    const code = errorCode(error);
    const Failure = UNSENT.test(code) || NOT_BELIEVED.test(code) ? NothingSent : CommandFailure;
    throw new Failure("service_not_running", formatUnreached(url, code));
  }
}

/** Posts a JSON text, and returns any answer as text. */
export async function postText(
  server: Asked,
  path: string,
  body: string,
): Promise<{ status: number; text: string }> {
  const { status, bytes } = await call(server, { method: "POST", path, body, mediaType: JSON_TYPE });
  return { status, text: DECODER.decode(bytes) };
}

/** An error before a connection exists, so the server knows nothing of the request. */
export class NothingSent extends CommandFailure {}

/** The error codes of a connection that never opened. Any other code may come from a connection that broke later. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/** The error codes of a certificate that this machine does not trust. Every other code is about the connection. */
const NOT_BELIEVED = /CERT|SIGNATURE|ALTNAME/;

function formatUnreached(url: string, code: string): string {
  return NOT_BELIEVED.test(code)
    ? `This machine does not trust the certificate of ${url} (${code}), so the command sent nothing. Renew the certificate, or name the host of the certificate. For your own authority, set NODE_EXTRA_CA_CERTS=/path/to/authority.pem.`
    : `No server answers at ${url} (${code}): start the service, or name the right address.`;
}

/** Sends one request to a server, also outside the routes of the key's environment. Throws the server's refusal. */
export async function askServer<Answer>(
  server: Asked,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const sent = { method, path, body: body === undefined ? null : writeJson(body), mediaType: JSON_TYPE };
  return readAnswer(await exchange(server, sent), server.url) as Answer;
}

/** Exchanges a request and its answer. It sends a request that only reads again where a proxy answers that it does not reach the server. */
async function exchange(server: Asked, sent: Sent): Promise<Answered> {
  let answered = await call(server, sent);
  // A command that waits only for a moment, such as a completion, has no time for another attempt.
  const canRetry = sent.method === "GET" && server.patienceMs === undefined;
  for (const waitMs of canRetry ? RETRY_WAITS_MS : []) {
    if (!isOfProxy(answered)) break;
    await sleep(systemClock, waitMs);
    answered = await call(server, sent);
  }
  const { status } = answered;
  if (status >= 200 && status < 300) return answered;
  if (isOfProxy(answered)) throw rejectProxyAnswer(server, sent, answered);
  throw readRefusal(server, status, readObject(DECODER.decode(answered.bytes)));
}

/** The waits before each further attempt to read. They cover the restart of a server behind its proxy. */
const RETRY_WAITS_MS = [250, 1_000, 2_000];

const PROXY_STATUSES: Readonly<Record<number, string>> = {
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** Reports whether a proxy made this answer: its status is one that proxies use, and its body is no refusal of a relay server. */
function isOfProxy({ status, bytes }: Answered): boolean {
  if (PROXY_STATUSES[status] === undefined) return false;
  const { code, ready } = readObject(DECODER.decode(bytes));
  return typeof code !== "string" && ready === undefined;
}

function rejectProxyAnswer({ url }: Asked, { method }: Sent, { status, headers }: Answered): CommandFailure {
  const program = cutToLine(headers.get("server") ?? "", MAX_PROGRAM_CHARS);
  const who = program === "" ? "A proxy" : `A proxy (${program})`;
  const unknown =
    method === "GET"
      ? ""
      : " It is unknown if the server did the work: check that before you run the command again.";
  return new CommandFailure(
    "service_not_running",
    `${who} at ${url} answered ${status} ${PROXY_STATUSES[status]}: it does not reach the relay server.${unknown} Check that relay serve runs, and that the proxy forwards to its host and port.`,
  );
}

const MAX_PROGRAM_CHARS = 60;

function readRefusal(remote: Asked, status: number, answer: JsonObject): Error {
  const { code, message, problems, resetAt, docs } = answer;
  if (typeof code !== "string" || typeof message !== "string") return rejectOtherServer(remote.url, status);
  // A command sends only methods that a server of this version takes.
  if (code === "method_not_allowed") return rejectOlder(remote.url);
  const resetAtMs = typeof resetAt === "string" ? Date.parse(resetAt) : Number.NaN;
  const advice =
    code === "unauthenticated" && remote.profile !== null
      ? ` Sign in again: relay login --profile ${remote.profile}.`
      : "";
  return new Refusal(toRefusalCode(code), `${plain(message)}${advice}`, {
    ...(Array.isArray(problems) ? { problems: problems.flatMap(readProblem) } : {}),
    ...(Number.isNaN(resetAtMs) ? {} : { resetAtMs }),
    ...(typeof docs === "string" && /^https?:/.test(docs) ? { details: { docs: plain(docs) } } : {}),
  });
}

function readProblem(value: Json): Problem[] {
  if (!isJsonObject(value) || typeof value.field !== "string" || typeof value.message !== "string") return [];
  return [{ field: value.field, message: value.message }];
}
