/**
 * Captures: temporary receiver URLs that store what a provider sends, verified or not, for one hour. A URL proves itself by a keyed hash of its ID, so
 * that an unknown or expired one costs no query on any node. Requests are sealed, because their headers can contain a secret (ADR 49).
 */
import { type Static, Type } from "typebox";
import { type Clock, toIso } from "../../base/clock.ts";
import { isId, newId } from "../../base/id.ts";
import { parseJson, writeJson } from "../../base/json.ts";
import {
  CAPTURE_LIFE_MS,
  MAX_CAPTURED_BYTES,
  MAX_CAPTURED_REQUESTS,
  MAX_OPEN_CAPTURES,
} from "../../base/limit.ts";
import { payload, payloadText, textOrNull, time } from "../../base/schema.ts";
import { findEnvironmentById } from "../../platform/account/environment.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { isSameText } from "../../rules/verify/signature-proof.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, type RowOf, text } from "../../store/table.ts";

const REQUEST_CAPTURE = defineTable({
  name: "request_capture",
  key: ["id"],
  topic: "request_capture",
  columns: {
    id: text(),
    environmentId: integer(),
    createdAt: integer(),
    expiresAt: integer(),
    createdBy: text(),
  },
});
type CaptureRow = RowOf<typeof REQUEST_CAPTURE>;

const CAPTURED_REQUEST = defineTable({
  name: "captured_request",
  key: ["captureId", "number"],
  columns: {
    captureId: text(),
    number: integer(),
    at: integer(),
    bytes: integer(),
    sealed: bytes(),
  },
});
type CapturedRow = RowOf<typeof CAPTURED_REQUEST>;

const sealedRequest = {
  method: Type.String(),
  search: payload(Type.String({ description: "what was appended to the URL, ? included" })),
  contentType: textOrNull,
  headers: Type.Record(Type.String(), payloadText),
  body: payload(Type.String({ description: "the body as text in UTF-8" })),
};
const sealedShape = Type.Object(sealedRequest);
type CapturedRequest = Static<typeof sealedShape>;

export const captureView = Type.Object({
  id: Type.String(),
  url: Type.String({ description: "the URL to enter at the provider" }),
  createdAt: time,
  expiresAt: time,
  requests: Type.Array(
    Type.Object({
      id: Type.String({ description: "the number of the request in this capture" }),
      at: time,
      ...sealedRequest,
      bytes: Type.Integer({ description: "the bytes of the body" }),
    }),
  ),
  isFull: Type.Boolean({ description: "true if no further request is stored" }),
});
export type CaptureView = Static<typeof captureView>;

const PREFIX = "cap_";
const SEPARATOR = "-";
/** The characters of the ID in the name: the prefix and 32 hexadecimal digits. */
const ID_CHARS = PREFIX.length + 32;
/** The first digits of an ID are its time in milliseconds. */
const TIME_DIGITS = 12;
/** The most headers of a stored request, and the most characters of each. */
const MAX_HEADERS = 60;
const MAX_HEADER_CHARS = 4_000;
/** The longest content type that a guess or an explanation takes. The headers have a longer one. */
const MAX_CONTENT_TYPE_CHARS = 200;
/** Headers of the connection, which say nothing about the sender. */
const OWN_HEADERS = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "keep-alive",
  "te",
  "upgrade",
]);
const MAX_SEARCH_CHARS = 4_000;
/** The most captures that are remembered as ended or full. */
const MAX_CLOSED = 10_000;

/** Reports whether the name in a receiver URL is that of a capture. No relay can have such a name, because of the underscore. */
export function isCaptureName(name: string): boolean {
  return name.startsWith(PREFIX);
}

export function captureUrl(sealer: Sealer, baseUrl: string, appId: string, id: string): string {
  return `${baseUrl}/hooks/${appId}/${id}${SEPARATOR}${sealer.captureToken(appId, id)}`;
}

/** Creates a capture. In an environment with the most open captures, it replaces the oldest one. */
export async function createCapture(tx: Writer, change: Change): Promise<CaptureRow> {
  const { environmentId, nowMs, by } = change;
  await tx.run(
    `DELETE FROM request_capture WHERE environment_id = $environmentId AND id NOT IN (
       SELECT id FROM request_capture WHERE environment_id = $environmentId AND expires_at > $nowMs ORDER BY id DESC LIMIT $most)`,
    { environmentId, nowMs, most: MAX_OPEN_CAPTURES - 1 },
  );
  const row = {
    id: newId("cap", nowMs),
    environmentId,
    createdAt: nowMs,
    expiresAt: nowMs + CAPTURE_LIFE_MS,
    createdBy: by,
  };
  await REQUEST_CAPTURE.insert(tx, row);
  await writeAudit(tx, { ...change, action: "capture.created", target: `capture:${row.id}` });
  return row;
}

/** Deletes a capture with its requests. Throws `not_found`. */
export async function deleteCapture(tx: Writer, id: string, change: Change): Promise<void> {
  await requireCapture(tx, id, change);
  await tx.run("DELETE FROM request_capture WHERE id = ?1", id);
  await writeAudit(tx, { ...change, action: "capture.deleted", target: `capture:${id}` });
}

/** Finds an open capture of the environment with its requests, oldest first. Throws `not_found`. */
export async function readCapture(
  tx: Reader,
  id: string,
  at: Pick<Change, "environmentId" | "nowMs">,
): Promise<{ row: CaptureRow; requests: CapturedRow[] }> {
  const row = await requireCapture(tx, id, at);
  const requests = await CAPTURED_REQUEST.all(tx, "WHERE capture_id = $id ORDER BY number", { id });
  return { row, requests };
}

async function requireCapture(
  tx: Reader,
  id: string,
  { environmentId, nowMs }: Pick<Change, "environmentId" | "nowMs">,
): Promise<CaptureRow> {
  const missing =
    "There is no open capture with this ID: a capture and its requests are deleted after one hour. Create a new one.";
  const row = await REQUEST_CAPTURE.require(tx, { id, environmentId }, missing);
  return row.expiresAt > nowMs ? row : await REQUEST_CAPTURE.require(tx, { id: "", environmentId }, missing);
}

/** Opens the requests of a capture, each in a turn of the event loop. */
export async function viewCapture(
  sealer: Sealer,
  { id, createdAt, expiresAt }: CaptureRow,
  rows: readonly CapturedRow[],
  url: string,
): Promise<CaptureView> {
  const requests: CaptureView["requests"] = [];
  for (const row of rows) {
    const opened = parseJson(sealer.unseal(row.sealed, sealContext(id))) as CapturedRequest;
    requests.push({ id: String(row.number), at: toIso(row.at), ...opened, bytes: row.bytes });
    await yieldToEventLoop();
  }
  const isFull = isFilled({ count: rows.length, bytes: rows.reduce((sum, row) => sum + row.bytes, 0) });
  return { id, url, createdAt: toIso(createdAt), expiresAt: toIso(expiresAt), requests, isFull };
}

function isFilled({ count, bytes: size }: { count: number; bytes: number }): boolean {
  return count >= MAX_CAPTURED_REQUESTS || size >= MAX_CAPTURED_BYTES;
}

function sealContext(id: string): string {
  return `capture:${id}`;
}

/** Deletes a capture whose hour is over. Returns whether there may be more. */
export async function deleteEndedCaptures(tx: Writer, nowMs: number): Promise<boolean> {
  const sql = `DELETE FROM request_capture WHERE id IN
    (SELECT id FROM request_capture WHERE expires_at <= $nowMs ORDER BY expires_at LIMIT $most)`;
  return (await tx.run(sql, { nowMs, most: DELETED_AT_ONCE })) === DELETED_AT_ONCE;
}

/** A capture can have three megabytes, which are overwritten: in the sealed JSON, a control character of a body has six. */
const DELETED_AT_ONCE = 1;

/** Finds the time when the next capture ends. null: there is none. */
export async function findNextEnd(tx: Reader): Promise<number | null> {
  const sql = "SELECT min(expires_at) AS at FROM request_capture";
  return (await tx.get<{ at: number | null }>(sql))?.at ?? null;
}

/** A request as it arrived at the URL of a capture. */
interface ArrivedRequest {
  method: string;
  search: string;
  headers: Headers;
  body: Uint8Array;
}

/** `isClosed`: the capture takes no further request. */
interface Taken {
  isStored: boolean;
  isClosed: boolean;
}

/** Takes the requests of captures. Its memory keeps a flood to an ended or full capture from the database. */
export class RequestCaptures {
  readonly #deps: { store: Store; clock: Clock; sealer: Sealer };
  /** The IDs of captures that take no further request, oldest first. */
  readonly #closed = new Set<string>();

  constructor(deps: { store: Store; clock: Clock; sealer: Sealer }) {
    this.#deps = deps;
  }

  /** Finds the ID of a capture that may take a request, without a query. null: the name proves nothing, its hour is over, or it is full. */
  find(appId: string, name: string): string | null {
    const id = name.slice(0, ID_CHARS);
    if (!isId("cap", id) || name[ID_CHARS] !== SEPARATOR || this.#closed.has(id)) return null;
    const { clock, sealer } = this.#deps;
    const createdAt = Number.parseInt(id.slice(PREFIX.length, PREFIX.length + TIME_DIGITS), 16);
    if (clock.now() >= createdAt + CAPTURE_LIFE_MS) return null;
    return isSameText(name.slice(ID_CHARS + 1), sealer.captureToken(appId, id)) ? id : null;
  }

  /** Stores a request. Returns false where the capture was deleted or is full. */
  async take(id: string, { method, search, headers, body }: ArrivedRequest): Promise<boolean> {
    const { clock, sealer } = this.#deps;
    const kept = [...headers]
      .filter(([name, value]) => !OWN_HEADERS.has(name) && value.length <= MAX_HEADER_CHARS)
      .slice(0, MAX_HEADERS);
    const contentType = headers.get("content-type");
    const request: CapturedRequest = {
      method,
      search: search.slice(0, MAX_SEARCH_CHARS),
      contentType: (contentType?.length ?? 0) > MAX_CONTENT_TYPE_CHARS ? null : contentType,
      headers: Object.fromEntries(kept),
      body: new TextDecoder().decode(body),
    };
    const sealed = sealer.seal(writeJson(request), sealContext(id));
    const { isStored, isClosed } = await this.#write(id, async (tx) => {
      const row = await REQUEST_CAPTURE.find(tx, { id });
      const nowMs = clock.now();
      const isOpen =
        row !== null && row.expiresAt > nowMs && (await findEnvironmentById(tx, row.environmentId)) !== null;
      if (!isOpen) return { isStored: false, isClosed: true };
      const sql =
        "SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM captured_request WHERE capture_id = ?1";
      const held = (await tx.get<{ count: number; bytes: number }>(sql, id)) ?? { count: 0, bytes: 0 };
      if (isFilled(held)) return { isStored: false, isClosed: true };
      const number = held.count + 1;
      await CAPTURED_REQUEST.insert(tx, { captureId: id, number, at: nowMs, bytes: body.byteLength, sealed });
      tx.notify("call", row.environmentId);
      return { isStored: true, isClosed: isFilled({ count: number, bytes: held.bytes + body.byteLength }) };
    });
    if (isClosed) this.#close(id);
    return isStored;
  }

  /** Runs the work in a transaction of the capture's environment. A deleted capture is closed. */
  async #write(id: string, work: (tx: Writer) => Promise<Taken>): Promise<Taken> {
    const { store } = this.#deps;
    const row = await store.read((tx) => REQUEST_CAPTURE.find(tx, { id }));
    if (row === null) return { isStored: false, isClosed: true };
    return await store.write("app", work, row.environmentId);
  }

  #close(id: string): void {
    this.#closed.add(id);
    const [oldest] = this.#closed;
    if (this.#closed.size > MAX_CLOSED && oldest !== undefined) this.#closed.delete(oldest);
  }
}
