/**
 * API keys: secret keys (`sk_…`) for servers and app keys (`ak_…`) for browsers, each bound to one environment. Shown once, stored
 * as SHA-256. It decides which key a token is and which web origins an app key works from (the specification's "Authentication", point 5),
 * never what a key may do. And the words for whoever makes a change, with a key or without one.
 */
import { type Static, Type } from "typebox";
import { hashToken, newId, newToken } from "../ground/id.ts";
import { MINUTE_MS } from "../ground/limit.ts";
import { MAX_PAGE_SIZE, makePage, type Page, type PageRequest } from "../ground/page.ts";
import { Refusal, type Warning } from "../ground/refusal.ts";
import { oneOf, show, time, timeOrNull } from "../ground/schema.ts";
import type { Origin, Reader, Writer } from "../store/port.ts";
import { bytes, defineTable, integer, json, orNull, type RowOf, text } from "../store/table.ts";
import type { EnvironmentName } from "./environment.ts";

export const API_KEY_KINDS = ["secret", "app"] as const;
export type ApiKeyKind = (typeof API_KEY_KINDS)[number];

const API_KEY = defineTable({
  name: "api_key",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    kind: text<ApiKeyKind>(),
    name: text(),
    keyHash: bytes(),
    /** Its prefix and last four characters: `sk_dev_…x4Gh`. */
    hint: text(),
    /** App keys: the web origins it works from. In production nothing else; elsewhere any https origin and localhost besides. */
    origins: json<string[]>(),
    createdAt: integer(),
    lastUsedAt: orNull(integer()),
    revokedAt: orNull(integer()),
  },
});

/** A key without what it is known by. */
const SHOWN_KEY = API_KEY.pick(
  "id",
  "kind",
  "name",
  "hint",
  "origins",
  "createdAt",
  "lastUsedAt",
  "revokedAt",
);
export type ApiKey = RowOf<typeof SHOWN_KEY>;

const PRESENTED_KEY = API_KEY.pick("id", "kind", "name", "hint", "origins", "lastUsedAt", "environmentId");
/** A live key that a caller presented, with the one environment it is bound to. */
export interface PresentedKey extends RowOf<typeof PRESENTED_KEY> {
  environmentName: EnvironmentName;
  appId: string;
}

const KEY_ORIGINS = API_KEY.pick("kind", "origins");
/** What decides from where a key works. */
type KeyOrigins = Pick<PresentedKey, "kind" | "environmentName" | "origins">;

export const keyView = Type.Object({
  id: Type.String(),
  kind: oneOf(API_KEY_KINDS),
  name: Type.String(),
  hint: Type.String(),
  origins: Type.Array(Type.String()),
  createdAt: time,
  lastUsedAt: timeOrNull,
  revokedAt: timeOrNull,
});
export type KeyView = Static<typeof keyView>;

export function viewKey(key: ApiKey): KeyView {
  return show(keyView, key);
}

export const TOKEN_CHARS = 32;
const TOKEN = /^[sa]k_(?:dev|live)_[A-Za-z0-9]{32}$/;
const MAX_NAME_CHARS = 100;
const TOUCH_EVERY_MS = MINUTE_MS;

/** Mints a key; `token` is shown once and stands nowhere. Refuses with `invalid_input` (name, origins). */
export async function mintApiKey(
  tx: Writer,
  input: {
    environment: { id: number; name: EnvironmentName };
    kind: ApiKeyKind;
    name: string;
    origins?: readonly string[] | undefined;
    /** Its letters where they are not to be random. */
    letters?: string;
    nowMs: number;
  },
): Promise<{ key: ApiKey; token: string }> {
  const { environment, kind, nowMs } = input;
  const prefix = `${kind === "secret" ? "sk" : "ak"}_${environment.name === "production" ? "live" : "dev"}_`;
  const token = `${prefix}${input.letters ?? newToken(TOKEN_CHARS)}`;
  const key: ApiKey = {
    id: newId("key", nowMs),
    kind,
    name: readName(input.name),
    hint: `${prefix}…${token.slice(-4)}`,
    origins: checkOrigins(kind, environment.name, input.origins ?? []),
    createdAt: nowMs,
    lastUsedAt: null,
    revokedAt: null,
  };
  await API_KEY.insert(tx, { ...key, environmentId: environment.id, keyHash: hashToken(token) });
  return { key, token };
}

/** The live key of this token with its environment; null for what has not a key's shape, is unknown or revoked. */
export async function findApiKeyByToken(tx: Reader, token: string): Promise<PresentedKey | null> {
  if (!TOKEN.test(token)) return null;
  const sql = `SELECT ${PRESENTED_KEY.columnsOf("api_key")}, environment.name AS environmentName, app_id AS appId
    FROM api_key JOIN environment ON environment.id = environment_id WHERE key_hash = ?1 AND revoked_at IS NULL`;
  const row = await tx.get<Pick<PresentedKey, "environmentName" | "appId">>(sql, hashToken(token));
  return row === null ? null : PRESENTED_KEY.read(row);
}

/** Whether `touchApiKey` is due: a key's last use is noted at most once a minute. */
export function apiKeyTouches(key: Pick<PresentedKey, "lastUsedAt">, nowMs: number): boolean {
  return key.lastUsedAt === null || nowMs - key.lastUsedAt >= TOUCH_EVERY_MS;
}

/** Notes that the key was used. Callers that race write once. */
export async function touchApiKey(tx: Writer, keyId: string, nowMs: number): Promise<void> {
  const sql =
    "UPDATE api_key SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)";
  await tx.run(sql, keyId, nowMs, nowMs - TOUCH_EVERY_MS);
}

/** Whether a web page of this origin may use the app key. Secret keys belong on servers and work from no page. */
export function keyWorksFrom(key: KeyOrigins, origin: string): boolean {
  return key.kind === "app" && isAllowedOrigin(key.environmentName, key.origins, origin);
}

/** What decides from where each live app key of the server works: all that is known of a call before its key is. */
export async function listKeyOrigins(tx: Reader): Promise<KeyOrigins[]> {
  const sql = `SELECT DISTINCT ${KEY_ORIGINS.columns}, environment.name AS environmentName FROM api_key
    JOIN environment ON environment.id = environment_id WHERE kind = 'app' AND revoked_at IS NULL`;
  const rows = await tx.all<Pick<PresentedKey, "environmentName">>(sql);
  return rows.map((row) => KEY_ORIGINS.read(row));
}

/** The environment's keys, newest first, revoked ones too. */
export async function listApiKeys(
  tx: Reader,
  environmentId: number,
  request: PageRequest = { limit: MAX_PAGE_SIZE, after: null },
): Promise<Page<ApiKey>> {
  const { after, limit } = request;
  const rest =
    "WHERE environment_id = $environmentId AND ($after IS NULL OR id < $after) ORDER BY id DESC LIMIT $most";
  const rows = await SHOWN_KEY.all(tx, rest, { environmentId, after, most: limit + 1 });
  return makePage(
    rows,
    request,
    (row) => row.id,
    (row) => row,
  );
}

/** Revokes a key at once and for good. Answers the key as it was; refuses with `not_found`, also for one revoked before. */
export async function revokeApiKey(
  tx: Writer,
  environmentId: number,
  keyId: string,
  nowMs: number,
): Promise<ApiKey> {
  const rest = "WHERE id = $keyId AND environment_id = $environmentId AND revoked_at IS NULL";
  const key = await SHOWN_KEY.get(tx, rest, { keyId, environmentId });
  if (key === null) throw new Refusal("not_found", "There is no live key with this id in this environment.");
  await API_KEY.change(tx, { id: keyId }, { revokedAt: nowMs });
  return key;
}

function readName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== "" && trimmed.length <= MAX_NAME_CHARS) return trimmed;
  throw new Refusal(
    "invalid_input",
    `name is not valid: say in 1 to ${MAX_NAME_CHARS} characters what uses the key.`,
  );
}

const MAX_ORIGINS = 20;
const LOOPBACK = /^(localhost|.+\.localhost|127\.0\.0\.1|\[::1\])$/;

/** The origins in the form a browser sends them. Refuses with `invalid_input` naming the one that is not an origin. */
function checkOrigins(
  kind: "secret" | "app",
  environment: EnvironmentName,
  origins: readonly string[],
): string[] {
  if (kind === "secret" && origins.length > 0) {
    throw new Refusal(
      "invalid_input",
      "origins is only for app keys: a secret key works from servers alone.",
    );
  }
  if (origins.length > MAX_ORIGINS) {
    throw new Refusal("invalid_input", `origins is too long: name at most ${MAX_ORIGINS}.`);
  }
  if (kind === "app" && environment === "production" && origins.length === 0) {
    throw new Refusal(
      "invalid_input",
      "origins is missing: a live app key works only from the origins it names, such as https://shop.example.com.",
    );
  }
  return [...new Set(origins.map(readOrigin))];
}

/** One sentence for each origin that no browser ever sends: a `*` is a letter like any other here, and stands for nothing. */
export function warnOfOrigins(origins: readonly string[]): Warning[] {
  return origins.flatMap((origin, index): Warning[] => {
    if (!origin.includes("*")) return [];
    const message = `origins holds ${origin}, which no page has: a * stands for nothing here, so name each origin as a browser sends it, such as https://shop.example.com.`;
    return [{ code: "origin_of_no_page", field: `origins.${index}`, message }];
  });
}

/** Whether a page of `origin` (as the browser sends it) may use a key of this environment that names `origins`. */
function isAllowedOrigin(environment: EnvironmentName, origins: readonly string[], origin: string): boolean {
  if (origins.includes(origin)) return true;
  if (environment === "production" || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  if (url.origin !== origin) return false;
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
}

function readOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const bare = url !== null && text.replace(/\/$/, "").toLowerCase() === url.origin;
  if (url === null || !bare || url.protocol !== "https:") {
    throw new Refusal(
      "invalid_input",
      "origins holds something that is not an https origin: write each as https://host, with a port if it has one, and no path.",
    );
  }
  return url.origin;
}

/** Who makes a change. */
export type Actor =
  | { kind: "key"; id: string }
  | { kind: "owner"; id: string; email: string }
  | { kind: "command_line" };

export const COMMAND_LINE: Actor = { kind: "command_line" };

/** The actor as stored and shown: `key:<id>`, `owner:<email>` or `command line`. */
export function actorWords(actor: Actor): string {
  switch (actor.kind) {
    case "key":
      return `key:${actor.id}`;
    case "owner":
      return `owner:${actor.email}`;
    case "command_line":
      return "command line";
  }
}

/** The store's origin for what the actor writes: a key is the app, everyone else sits at the dashboard or its machine. */
export function actorOrigin(actor: Actor): Origin {
  return actor.kind === "key" ? "app" : "dashboard";
}
