/**
 * Logins of the command line, modeled on RFC 8628. A command gets a long device code to poll with and a short user code, which the user types
 * in the dashboard to allow or deny the login. Each code works once, for ten minutes, and is stored only as a digest. The key is created when
 * the command fetches it, so no key waits for its fetch.
 */
import { type Static, Type } from "typebox";
import { hashToken, newId, newToken } from "../../base/id.ts";
import {
  DEFAULT_LOGIN_KEY_DAYS,
  HOUR_MS,
  LOGIN_LIFE_MS,
  MAX_WAITING_LOGINS,
  MAX_WAITING_LOGINS_PER_PROVIDER,
} from "../../base/limit.ts";
import { providerOf, siteOf } from "../../base/network.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import { cutToLine, plain } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";

type LoginState = "waiting" | "approved" | "denied" | "used";

const LOGIN = defineTable({
  name: "login_request",
  key: ["id"],
  columns: {
    id: text(),
    deviceHash: bytes(),
    codeDigest: bytes(),
    /** Machine and account name as the command sent them: untrusted text. */
    machine: text(),
    account: text(),
    /** The network address of the request. */
    source: text(),
    /** Lifetime of the key, in days. */
    days: integer(),
    createdAt: integer(),
    expiresAt: integer(),
    state: text<LoginState>(),
    /** The owner who answered, and the environment they chose. */
    ownerId: orNull(text()),
    environmentId: orNull(integer()),
    /** The fetched key. */
    keyId: orNull(text()),
  },
});

export type Login = RowOf<typeof LOGIN>;

export const loginView = Type.Object({
  machine: Type.String(),
  account: Type.String(),
  source: Type.String(),
  days: Type.Integer(),
  createdAt: time,
  expiresAt: time,
});
export type LoginView = Static<typeof loginView>;

export function viewLogin(login: Login): LoginView {
  return show(loginView, login);
}

/** Has no vowels, so that codes spell no words, and no letters that look like digits. Eight letters hold 34 bits. */
const CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_CHARS = 8;
const DEVICE_CODE_CHARS = 43;
/** Both limits fit into a key's name, which has at most 100 characters. */
const MAX_MACHINE_CHARS = 40;
const MAX_ACCOUNT_CHARS = 30;
/** The time that the result of a login can be queried after it ended. */
const RETENTION_MS = HOUR_MS;

type Digest = (text: string) => Uint8Array;

/** Begins a login and returns its two codes. Throws `login_capped`. */
export async function beginLogin(
  tx: Writer,
  input: {
    machine: string;
    account: string;
    source: string;
    days?: number | undefined;
    digest: Digest;
    nowMs: number;
  },
): Promise<{ login: Login; deviceCode: string; userCode: string }> {
  const { source, digest, nowMs } = input;
  await freeLoginSlot(tx, source, nowMs);
  const deviceCode = newToken(DEVICE_CODE_CHARS);
  const code = newToken(CODE_CHARS, CODE_LETTERS);
  const login: Login = {
    id: newId("lgn", nowMs),
    deviceHash: hashToken(deviceCode),
    codeDigest: digestCode(code, digest),
    machine: cleanName(input.machine, MAX_MACHINE_CHARS) || "a machine without a name",
    account: cleanName(input.account, MAX_ACCOUNT_CHARS),
    source,
    days: input.days ?? DEFAULT_LOGIN_KEY_DAYS,
    createdAt: nowMs,
    expiresAt: nowMs + LOGIN_LIFE_MS,
    state: "waiting",
    ownerId: null,
    environmentId: null,
    keyId: null,
  };
  await LOGIN.insert(tx, login);
  return { login, deviceCode, userCode: `${code.slice(0, 4)}-${code.slice(4)}` };
}

interface WaitingLogin {
  id: string;
  source: string;
  expiresAt: number;
}

/**
 * Frees a slot if too many logins wait, in all or from one provider. The only login of a network is never evicted: if every network has one,
 * the new login is rejected with `login_capped`.
 */
async function freeLoginSlot(tx: Writer, source: string, nowMs: number): Promise<void> {
  const waiting = await tx.all<WaitingLogin>(
    `SELECT id, source, expires_at AS expiresAt FROM login_request WHERE expires_at > $nowMs AND state = 'waiting' ORDER BY id`,
    { nowMs },
  );
  const provider = providerOf(source);
  const sameProvider = waiting.filter((one) => providerOf(one.source) === provider);
  const isProviderFull = sameProvider.length >= MAX_WAITING_LOGINS_PER_PROVIDER;
  if (!isProviderFull && waiting.length < MAX_WAITING_LOGINS) return;
  const competing = isProviderFull ? sameProvider : waiting;
  const evicted = chooseEvicted(competing, source);
  if (evicted === null)
    throw new Refusal(
      "login_capped",
      `${competing.length} logins of ${isProviderFull ? `the network ${provider}` : "this server"} wait for an owner's answer, which is the limit: wait until resetAt, or use a key of the dashboard's Settings with RELAY_URL and RELAY_KEY.`,
      { resetAtMs: Math.min(...competing.map(({ expiresAt }) => expiresAt)) },
    );
  await LOGIN.delete(tx, { id: evicted.id });
}

/**
 * Chooses the oldest login of the network that has the most: the caller's own network if none has more, otherwise a network with several.
 * Among equal networks, the one that began last loses a login.
 */
function chooseEvicted(waiting: readonly WaitingLogin[], source: string): WaitingLogin | null {
  const perSite = Map.groupBy(waiting, (one) => siteOf(one.source));
  const ownNetwork = perSite.get(siteOf(source)) ?? [];
  const [most = []] = [...perSite.values()].reverse().sort((one, other) => other.length - one.length);
  if (ownNetwork.length >= most.length) return ownNetwork[0] ?? null;
  return most.length > 1 ? (most[0] ?? null) : null;
}

/** Replaces characters outside the Basic Multilingual Plane, because databases count them differently. */
function cleanName(name: string, maxChars: number): string {
  return cutToLine(plain(name).replace(/[\u{10000}-\u{10ffff}]/gu, "?"), maxChars);
}

/** A keyed digest: a reader of the database cannot try codes against it. */
function digestCode(code: string, digest: Digest): Uint8Array {
  return digest(`login code\n${code}`);
}

/** Finds the waiting login of a typed code. Throws `not_found`, `login_used` or `expired_token`. */
export async function requireWaitingLogin(
  tx: Reader,
  { code, digest, nowMs }: { code: string; digest: Digest; nowMs: number },
): Promise<Login> {
  const letters = code.toUpperCase().replace(/[^A-Z]/g, "");
  const codeDigest = digestCode(letters.slice(0, 2 * CODE_CHARS), digest);
  const login = await LOGIN.get(tx, "WHERE code_digest = $codeDigest", { codeDigest });
  if (login === null)
    throw new Refusal(
      "not_found",
      "No login waits under this code: type the eight letters that your terminal shows.",
    );
  if (login.state !== "waiting")
    throw new Refusal("login_used", `${ANSWERED[login.state]} Run relay login again for another code.`);
  if (login.expiresAt <= nowMs) throw rejectExpired();
  return login;
}

const ANSWERED: Readonly<Record<Exclude<LoginState, "waiting">, string>> = {
  approved: "This login was allowed already.",
  denied: "This login was denied already.",
  used: "This login was allowed already, and its key fetched.",
};

/** Records the owner's answer: the environment that the key is for, or null to deny the login. */
export async function answerLogin(
  tx: Writer,
  login: Login,
  { ownerId, environmentId }: { ownerId: string; environmentId: number | null },
): Promise<void> {
  const state = environmentId === null ? "denied" : "approved";
  await LOGIN.change(tx, { id: login.id }, { state, ownerId, environmentId });
}

/** Finds the approved login of a device code. Until it is approved, throws the errors of RFC 8628. */
export async function requireApprovedLogin(
  tx: Reader,
  deviceCode: string,
  nowMs: number,
): Promise<Login & { state: "approved" | "used" }> {
  const deviceHash = hashToken(deviceCode);
  const login = await LOGIN.get(tx, "WHERE device_hash = $deviceHash", { deviceHash });
  if (login === null) throw rejectExpired();
  const { state } = login;
  if (state === "denied")
    throw new Refusal("access_denied", "The login was denied in the dashboard, and no key was created.");
  // A used login stays used, even after it expired.
  if (state === "used") return { ...login, state };
  if (login.expiresAt <= nowMs) throw rejectExpired();
  if (state === "approved") return { ...login, state };
  throw new Refusal(
    "authorization_pending",
    "No owner has allowed or denied this login in the dashboard yet: ask again after the interval.",
  );
}

function rejectExpired(): Refusal {
  return new Refusal(
    "expired_token",
    "This login has ended: a code works for ten minutes. Run relay login again for another.",
  );
}

/** Marks the login as used once its key was fetched. */
export async function markLoginUsed(tx: Writer, login: Login, keyId: string): Promise<void> {
  await LOGIN.change(tx, { id: login.id }, { state: "used", keyId });
}

/** Deletes logins that ended more than an hour ago. The daily maintenance calls it. */
export async function deleteEndedLogins(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM login_request WHERE expires_at <= ?1", nowMs - RETENTION_MS);
}
