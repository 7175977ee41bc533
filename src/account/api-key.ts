/**
 * API keys: secret keys (`sk_…`) for servers and app keys (`ak_…`) for browsers, each bound to one environment. Shown once, stored
 * as SHA-256. It decides which key a token is and which web origins an app key works from (the specification's "Authentication", point 5),
 * never what a key may do.
 */
import { hashToken, newId, newToken } from "../ground/id.ts";
import { MINUTE_MS } from "../ground/limit.ts";
import { MAX_PAGE_SIZE, makePage, type Page, type PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import type { EnvironmentName } from "./environment.ts";

export type ApiKeyKind = "secret" | "app";

/** A key as lists show it. */
export interface ApiKey {
  id: string;
  kind: ApiKeyKind;
  name: string;
  /** Its prefix and last four characters: `sk_dev_…x4Gh`. */
  hint: string;
  /** App keys: the web origins it works from. In production nothing else; elsewhere any https origin and localhost besides. */
  origins: string[];
  createdAt: number;
  lastUsedAt: number | null;
  revokedAt: number | null;
}

/** A live key that a caller presented, with the one environment it is bound to. */
export interface PresentedKey {
  id: string;
  kind: ApiKeyKind;
  name: string;
  origins: string[];
  lastUsedAt: number | null;
  environmentId: number;
  environmentName: EnvironmentName;
  appId: string;
}

interface ApiKeyRow extends Omit<ApiKey, "origins"> {
  origins: string;
}

const TOKEN_CHARS = 32;
const TOKEN = /^[sa]k_(?:dev|live)_[A-Za-z0-9]{32}$/;
const MAX_NAME_CHARS = 100;
const TOUCH_EVERY_MS = MINUTE_MS;
const COLUMNS = `id, kind, name, hint, origins, created_at AS createdAt, last_used_at AS lastUsedAt,
  revoked_at AS revokedAt`;

/** Mints a key; `token` is shown once and stands nowhere. Refuses with `invalid_input` (name, origins). */
export async function mintApiKey(
  tx: Writer,
  input: {
    environment: { id: number; name: EnvironmentName };
    kind: ApiKeyKind;
    name: string;
    origins?: readonly string[] | undefined;
    nowMs: number;
  },
): Promise<{ key: ApiKey; token: string }> {
  const { environment, kind, nowMs } = input;
  const prefix = `${kind === "secret" ? "sk" : "ak"}_${environment.name === "production" ? "live" : "dev"}_`;
  const token = `${prefix}${newToken(TOKEN_CHARS)}`;
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
  await insertKey(tx, environment.id, key, token);
  return { key, token };
}

async function insertKey(tx: Writer, environmentId: number, key: ApiKey, token: string): Promise<void> {
  const sql = `INSERT INTO api_key (id, environment_id, kind, name, key_hash, hint, origins, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`;
  const origins = JSON.stringify(key.origins);
  await tx.run(
    sql,
    key.id,
    environmentId,
    key.kind,
    key.name,
    hashToken(token),
    key.hint,
    origins,
    key.createdAt,
  );
}

/** The live key of this token with its environment; null for what has not a key's shape, is unknown or revoked. */
export async function findApiKeyByToken(tx: Reader, token: string): Promise<PresentedKey | null> {
  if (!TOKEN.test(token)) return null;
  const sql = `SELECT api_key.id, kind, api_key.name, origins, last_used_at AS lastUsedAt, environment_id AS environmentId,
    environment.name AS environmentName, app_id AS appId
    FROM api_key JOIN environment ON environment.id = environment_id WHERE key_hash = ?1 AND revoked_at IS NULL`;
  const row = await tx.get<Omit<PresentedKey, "origins"> & { origins: string }>(sql, hashToken(token));
  return row === null ? null : { ...row, origins: JSON.parse(row.origins) as string[] };
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
export function keyWorksFrom(
  key: Pick<PresentedKey, "kind" | "environmentName" | "origins">,
  origin: string,
): boolean {
  return key.kind === "app" && isAllowedOrigin(key.environmentName, key.origins, origin);
}

/** What decides from where each live app key of the server works: all that is known of a call before its key is. */
export async function listKeyOrigins(
  tx: Reader,
): Promise<Pick<PresentedKey, "kind" | "environmentName" | "origins">[]> {
  const sql = `SELECT DISTINCT kind, environment.name AS environmentName, origins FROM api_key
    JOIN environment ON environment.id = environment_id WHERE kind = 'app' AND revoked_at IS NULL`;
  const rows = await tx.all<{ kind: ApiKeyKind; environmentName: EnvironmentName; origins: string }>(sql);
  return rows.map((row) => ({ ...row, origins: JSON.parse(row.origins) as string[] }));
}

/** The environment's keys, newest first, revoked ones too. */
export async function listApiKeys(
  tx: Reader,
  environmentId: number,
  request: PageRequest = { limit: MAX_PAGE_SIZE, after: null },
): Promise<Page<ApiKey>> {
  const sql = `SELECT ${COLUMNS} FROM api_key WHERE environment_id = ?1 AND (?2 IS NULL OR id < ?2)
    ORDER BY id DESC LIMIT ?3`;
  const rows = await tx.all<ApiKeyRow>(sql, environmentId, request.after, request.limit + 1);
  return makePage(rows, request, (row) => row.id, toApiKey);
}

/** Revokes a key at once and for good. Answers the key as it was; refuses with `not_found`, also for one revoked before. */
export async function revokeApiKey(
  tx: Writer,
  environmentId: number,
  keyId: string,
  nowMs: number,
): Promise<ApiKey> {
  const find = `SELECT ${COLUMNS} FROM api_key WHERE id = ?1 AND environment_id = ?2 AND revoked_at IS NULL`;
  const row = await tx.get<ApiKeyRow>(find, keyId, environmentId);
  if (row === null) throw new Refusal("not_found", "There is no live key with this id in this environment.");
  await tx.run("UPDATE api_key SET revoked_at = ?2 WHERE id = ?1", keyId, nowMs);
  return toApiKey(row);
}

function readName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== "" && trimmed.length <= MAX_NAME_CHARS) return trimmed;
  throw new Refusal(
    "invalid_input",
    `name is not valid: say in 1 to ${MAX_NAME_CHARS} characters what uses the key.`,
  );
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return { ...row, origins: JSON.parse(row.origins) as string[] };
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
export function warnOfOrigins(origins: readonly string[]): string[] {
  return origins
    .filter((origin) => origin.includes("*"))
    .map(
      (origin) =>
        `origins holds ${origin}, which no page has: a * stands for nothing here, so name each origin as a browser sends it, such as https://shop.example.com.`,
    );
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
