/**
 * API keys: secret keys (`relay_live_…`) for servers and app keys (`ak_…`) for browsers, each bound to one environment. Relay shows a token
 * once and stores its SHA-256. This file finds the key of a token and never decides what a key may do. It also names the actor of a change.
 */
import { type Static, Type } from "typebox";
import { hashToken, newId, newToken } from "../../base/id.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { MAX_PAGE_SIZE, makePage, type Page, type PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, orNull as shownOrNull, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import type { Origin, Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { EnvironmentName } from "./environment.ts";
import { checkOrigins, type KeyOrigins } from "./key-origin.ts";
import { listMemberships } from "./membership.ts";
import { KEY_PERMISSIONS, type Membership, PERMISSION_NAMES, type Permission } from "./permission.ts";

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
    /** Prefix and last four characters of the token: `relay_dev_…x4Gh`. */
    hint: text(),
    /** Web origins that may use an app key. Outside production, every https origin and localhost may use it too. */
    origins: json<string[]>(),
    createdAt: integer(),
    lastUsedAt: orNull(integer()),
    revokedAt: orNull(integer()),
    /** The owner whose `relay login` made the key; null for a key of the environment itself. */
    ownerId: orNull(text()),
    /** The time when the key expires; null: never. */
    expiresAt: orNull(integer()),
    /** The permissions of the key; null: what every secret key may do. */
    scopes: orNull(json<Permission[]>()),
  },
});

/** The columns that may be shown: all except the hash. */
const SHOWN_KEY = API_KEY.pick(
  "id",
  "kind",
  "name",
  "hint",
  "origins",
  "createdAt",
  "lastUsedAt",
  "revokedAt",
  "expiresAt",
  "scopes",
);
/** `owner`: the email address of the owner whose login made the key. */
export type ApiKey = RowOf<typeof SHOWN_KEY> & { owner: string | null };

const OWNER_EMAIL = "(SELECT email FROM owner WHERE owner.id = owner_id) AS owner";

const PRESENTED_KEY = API_KEY.pick(
  "id",
  "kind",
  "name",
  "hint",
  "origins",
  "createdAt",
  "lastUsedAt",
  "expiresAt",
  "environmentId",
  "ownerId",
  "scopes",
);
/** A live key that a caller presented, with the one environment it is bound to. */
export interface PresentedKey extends RowOf<typeof PRESENTED_KEY> {
  environmentName: EnvironmentName;
  appId: string;
  owner: string | null;
  /** The present memberships of the person whose login made the key; null for a key of the environment itself. */
  memberships: Membership[] | null;
}

const KEY_ORIGINS = API_KEY.pick("kind", "origins");

export const keyView = Type.Object({
  id: Type.String(),
  kind: oneOf(API_KEY_KINDS),
  name: Type.String(),
  hint: Type.String(),
  origins: Type.Array(Type.String()),
  createdAt: time,
  lastUsedAt: timeOrNull,
  revokedAt: timeOrNull,
  owner: textOrNull,
  expiresAt: timeOrNull,
  scopes: shownOrNull(Type.Array(oneOf(PERMISSION_NAMES))),
});
export type KeyView = Static<typeof keyView>;

export function viewKey(key: ApiKey): KeyView {
  return show(keyView, key);
}

export const TOKEN_CHARS = 32;
/** Accepts the prefix `sk_` of earlier versions: old keys stay valid, and new keys do not use it because another company's keys do. */
const TOKEN = /^(?:relay|[sa]k)_(?:dev|live)_[A-Za-z0-9]{32}$/;

const MAX_NAME_CHARS = 100;
const USE_INTERVAL_MS = MINUTE_MS;

/** Returns the prefix of a key kind. The prefix is unique to Relay, so that secret scanners can name the owner of a leaked key. */
function prefixOf(kind: ApiKeyKind, environment: EnvironmentName): string {
  return `${kind === "secret" ? "relay" : "ak"}_${environment === "production" ? "live" : "dev"}_`;
}

/** Lists the spellings of a secret key with these random letters: the current prefix first, then the prefix of earlier versions. */
export function listSecretKeySpellings(
  letters: string,
  environment: EnvironmentName,
): [now: string, earlier: string] {
  const now = `${prefixOf("secret", environment)}${letters}`;
  return [now, now.replace(/^relay_/, "sk_")];
}

/** Creates a key. The returned `token` is shown once and stored nowhere. Throws `invalid_input` (name, origins). */
export async function mintApiKey(
  tx: Writer,
  input: {
    environment: { id: number; name: EnvironmentName };
    kind: ApiKeyKind;
    name: string;
    origins?: readonly string[] | undefined;
    /** Fixed letters instead of random ones. */
    letters?: string;
    /** The owner whose login makes the key, and its expiry. */
    login?: { owner: { id: string; email: string }; expiresAt: number };
    /** The permissions of the key. Absent or null: what every secret key may do. */
    scopes?: readonly Permission[] | null | undefined;
    nowMs: number;
  },
): Promise<{ key: ApiKey; token: string }> {
  const { environment, kind, nowMs, login } = input;
  const prefix = prefixOf(kind, environment.name);
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
    owner: login?.owner.email ?? null,
    expiresAt: login?.expiresAt ?? null,
    scopes: readScopes(kind, input.scopes ?? null),
  };
  const { owner, ...row } = key;
  const ownerId = login?.owner.id ?? null;
  await API_KEY.insert(tx, { ...row, environmentId: environment.id, keyHash: hashToken(token), ownerId });
  return { key, token };
}

/** Finds the live key of a token, with its environment. Returns null for a malformed, unknown, revoked or expired token. */
export async function findApiKeyByToken(
  tx: Reader,
  token: string,
  nowMs: number,
): Promise<PresentedKey | null> {
  if (!TOKEN.test(token)) return null;
  const sql = `SELECT ${PRESENTED_KEY.columnsOf("api_key")}, environment.name AS environmentName, app_id AS appId, ${OWNER_EMAIL}
    FROM api_key JOIN environment ON environment.id = environment_id
    WHERE key_hash = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2) AND deleted_at IS NULL`;
  const row = await tx.get<Pick<PresentedKey, "environmentName" | "appId" | "owner">>(
    sql,
    hashToken(token),
    nowMs,
  );
  if (row === null) return null;
  const key = PRESENTED_KEY.read(row);
  return { ...key, memberships: key.ownerId === null ? null : await listMemberships(tx, key.ownerId) };
}

/** Finds why a key of `relay login` stopped working, for the error message. Returns null for any other token. */
export async function findEndedLoginKey(
  tx: Reader,
  token: string,
): Promise<{ revokedAt: number | null; expiresAt: number } | null> {
  if (!TOKEN.test(token)) return null;
  const sql = `SELECT revoked_at AS revokedAt, expires_at AS expiresAt FROM api_key
    WHERE key_hash = ?1 AND expires_at IS NOT NULL`;
  return await tx.get(sql, hashToken(token));
}

/** Reports whether the use of a key must be recorded: at most once a minute. */
export function isApiKeyUseDue(key: Pick<PresentedKey, "lastUsedAt">, nowMs: number): boolean {
  return key.lastUsedAt === null || nowMs - key.lastUsedAt >= USE_INTERVAL_MS;
}

/** Records that the key was used. Only one of several concurrent callers writes. */
export async function recordApiKeyUse(tx: Writer, keyId: string, nowMs: number): Promise<void> {
  const sql =
    "UPDATE api_key SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)";
  await tx.run(sql, keyId, nowMs, nowMs - USE_INTERVAL_MS);
}

/** Lists the allowed origins of every live app key. A browser's preflight request names no key, so CORS must be decided from all of them. */
export async function listKeyOrigins(tx: Reader): Promise<KeyOrigins[]> {
  const sql = `SELECT DISTINCT ${KEY_ORIGINS.columns}, environment.name AS environmentName FROM api_key
    JOIN environment ON environment.id = environment_id WHERE kind = 'app' AND revoked_at IS NULL AND deleted_at IS NULL`;
  const rows = await tx.all<Pick<PresentedKey, "environmentName">>(sql);
  return rows.map((row) => KEY_ORIGINS.read(row));
}

/** Lists the environment's keys, newest first, including revoked ones. */
export async function listApiKeys(
  tx: Reader,
  environmentId: number,
  request: PageRequest = { limit: MAX_PAGE_SIZE, after: null },
): Promise<Page<ApiKey>> {
  const { after, limit } = request;
  const sql = `SELECT ${SHOWN_KEY.columns}, ${OWNER_EMAIL} FROM api_key
    WHERE environment_id = $environmentId AND ($after IS NULL OR id < $after) ORDER BY id DESC LIMIT $most`;
  const found = await tx.all<Pick<ApiKey, "owner">>(sql, { environmentId, after, most: limit + 1 });
  const rows = found.map((row) => SHOWN_KEY.read(row));
  return makePage(
    rows,
    request,
    (row) => row.id,
    (row) => row,
  );
}

/** Revokes a key permanently and returns its row from before the change. Throws `not_found`, also for a key that is revoked already. */
export async function revokeApiKey(
  tx: Writer,
  environmentId: number,
  keyId: string,
  nowMs: number,
): Promise<ApiKey> {
  const sql = `SELECT ${SHOWN_KEY.columns}, ${OWNER_EMAIL} FROM api_key
    WHERE id = $keyId AND environment_id = $environmentId AND revoked_at IS NULL`;
  const found = await tx.get<Pick<ApiKey, "owner">>(sql, { keyId, environmentId });
  if (found === null)
    throw new Refusal(
      "not_found",
      `There is no active key ${keyId} in this environment: relay keys list shows the existing ones.`,
    );
  await API_KEY.change(tx, { id: keyId }, { revokedAt: nowMs });
  return SHOWN_KEY.read(found);
}

/** Returns the permissions in the order of the table. Throws `invalid_input`. */
function readScopes(kind: ApiKeyKind, scopes: readonly Permission[] | null): Permission[] | null {
  if (scopes === null) return null;
  if (kind === "app")
    throw new Refusal(
      "invalid_input",
      "scopes is not allowed for an app key, which works only on the client routes: leave it out.",
    );
  const impossible = scopes.find((name) => !KEY_PERMISSIONS.has(name));
  if (impossible !== undefined)
    throw new Refusal("invalid_input", `scopes has ${impossible}, which no key can have: leave it out.`);
  return PERMISSION_NAMES.filter((name) => scopes.includes(name));
}

function readName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== "" && trimmed.length <= MAX_NAME_CHARS) return trimmed;
  throw new Refusal(
    "invalid_input",
    `name is not valid: say in 1 to ${MAX_NAME_CHARS} characters what uses the key.`,
  );
}

/** The person or program that makes a change. */
export type Actor =
  /** `owner`: the email address of the owner whose login made the key. */
  | { kind: "key"; id: string; owner: string | null }
  | { kind: "owner"; id: string; email: string }
  | { kind: "command_line" };

export const COMMAND_LINE: Actor = { kind: "command_line" };

/** Formats the actor for the audit log: `key:<id>`, `owner:<email> by key:<id>`, `owner:<email>` or `command line`. */
export function formatActor(actor: Actor): string {
  switch (actor.kind) {
    case "key":
      return actor.owner === null ? `key:${actor.id}` : `owner:${actor.owner} by key:${actor.id}`;
    case "owner":
      return `owner:${actor.email}`;
    case "command_line":
      return "command line";
  }
}

/** Returns the store's origin for a write: `app` for a key, `dashboard` for an owner and the command line. */
export function actorOrigin(actor: Actor): Origin {
  return actor.kind === "key" ? "app" : "dashboard";
}
