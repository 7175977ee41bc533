/**
 * Logins of the command line (in the manner of RFC 8628): a command asks and is given two codes, a long one that it polls with and a short one that
 * its person types in the dashboard, where an owner allows or denies it. Each works once, for ten minutes, and is kept as a digest alone. The key
 * is made when the command fetches it, so that it stands nowhere before.
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
    /** What the command says of its machine and of who is signed in there: a stranger's words. */
    machine: text(),
    account: text(),
    /** The address that it asked from. */
    source: text(),
    /** How long the key is to live. */
    days: integer(),
    createdAt: integer(),
    expiresAt: integer(),
    state: text<LoginState>(),
    /** Who answered, and for where. */
    ownerId: orNull(text()),
    environmentId: orNull(integer()),
    /** The key that was fetched. */
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

/** No vowels, so that no word comes of it, and no letters that look like digits: eight of them hold 34 bits. */
const CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_CHARS = 8;
const DEVICE_CODE_CHARS = 43;
/** Both stand in the name of the key, which has a hundred. */
const MAX_MACHINE_CHARS = 40;
const MAX_ACCOUNT_CHARS = 30;
/** How long what became of it can be asked for. */
const RETENTION_MS = HOUR_MS;

type Digest = (text: string) => Uint8Array;

/** Begins one. */
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
 * Makes room for one more login where as many wait as may, in all or from one provider. Strangers never push out the only login of a
 * network: where each network has one, the new login is refused with `login_capped`.
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
      `${competing.length} logins of ${isProviderFull ? `the network ${provider}` : "this server"} wait for an owner's answer, the most at one time: wait until resetAt, or use a key of the dashboard's Settings with RELAY_URL and RELAY_KEY.`,
      { resetAtMs: Math.min(...competing.map(({ expiresAt }) => expiresAt)) },
    );
  await LOGIN.delete(tx, { id: evicted.id });
}

/**
 * The oldest login of the network with the most: the caller's own where no other has more, else one with several. Of equal networks the one
 * that began last gives it, as it is not the one that waited before the crowd came.
 */
function chooseEvicted(waiting: readonly WaitingLogin[], source: string): WaitingLogin | null {
  const perSite = Map.groupBy(waiting, (one) => siteOf(one.source));
  const own = perSite.get(siteOf(source)) ?? [];
  const [most = []] = [...perSite.values()].reverse().sort((one, other) => other.length - one.length);
  if (own.length >= most.length) return own[0] ?? null;
  return most.length > 1 ? (most[0] ?? null) : null;
}

/** What lies beyond the first plane is two characters to some and one to others. */
function cleanName(name: string, maxChars: number): string {
  return cutToLine(plain(name).replace(/[\u{10000}-\u{10ffff}]/gu, "?"), maxChars);
}

/** Keyed: who reads the database tries no codes against it. */
function digestCode(code: string, digest: Digest): Uint8Array {
  return digest(`login code\n${code}`);
}

/** The login that waits under the code a person typed. Refuses a code that there is not, and one that was answered or has ended. */
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

/** Answers the login for its owner's word: the environment that its key is for, or null to deny it. */
export async function answerLogin(
  tx: Writer,
  login: Login,
  { ownerId, environmentId }: { ownerId: string; environmentId: number | null },
): Promise<void> {
  const state = environmentId === null ? "denied" : "approved";
  await LOGIN.change(tx, { id: login.id }, { state, ownerId, environmentId });
}

/** The login of the code that a command polls with, once an owner has allowed it. Refuses as RFC 8628 names it while there is nothing to fetch. */
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
    throw new Refusal("access_denied", "The login was denied in the dashboard, and no key was made.");
  // What was fetched stays so, however late it is asked for again.
  if (state === "used") return { ...login, state };
  if (login.expiresAt <= nowMs) throw rejectExpired();
  if (state === "approved") return { ...login, state };
  throw new Refusal(
    "authorization_pending",
    "Nobody has allowed or denied this login in the dashboard yet: ask again after the interval.",
  );
}

function rejectExpired(): Refusal {
  return new Refusal(
    "expired_token",
    "This login has ended: a code works for ten minutes. Run relay login again for another.",
  );
}

/** Its key was fetched: nothing else is. */
export async function markLoginUsed(tx: Writer, login: Login, keyId: string): Promise<void> {
  await LOGIN.change(tx, { id: login.id }, { state: "used", keyId });
}

/** Forgets those that ended a while ago; for the daily cleaning. */
export async function deleteEndedLogins(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM login_request WHERE expires_at <= ?1", nowMs - RETENTION_MS);
}
