/**
 * Sign-ins that wait for the provider's response. The state names one, belongs to the browser that began it (by a cookie), works once, and expires. The
 * store has only hashes of the state and of the cookie, and the sealed nonce and code verifier.
 */
import { hashToken, newToken } from "../../base/id.ts";
import { OIDC_SIGNIN_LIFE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, text } from "../../store/table.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Provider } from "./provider.ts";

const OIDC_SIGNIN = defineTable({
  name: "oidc_signin",
  key: ["stateHash"],
  columns: {
    stateHash: bytes(),
    browserHash: bytes(),
    issuer: text(),
    clientId: text(),
    secrets: bytes(),
    /** The session that is authenticated again; null for a new session. */
    sessionId: orNull(text()),
    returnTo: text(),
    expiresAt: integer(),
  },
});

const TOKEN_CHARS = 43;
const BROWSER_TOKEN = new RegExp(`^[A-Za-z0-9_-]{${TOKEN_CHARS}}$`);
const SECRETS_CONTEXT = "oidc signin";

/** The values that the response is checked with. */
export interface SigninSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** A sign-in that the response ends. */
export interface PendingSignin extends SigninSecrets {
  issuer: string;
  clientId: string;
  sessionId: string | null;
  returnTo: string;
  /** Milliseconds. */
  begunAt: number;
}

/** Returns the token of a browser's cookie, or a new one for a browser without a valid one. Sign-ins in several tabs share it. */
export function chooseBrowserToken(known: string | null): string {
  return known !== null && BROWSER_TOKEN.test(known) ? known : newToken(TOKEN_CHARS);
}

/** Stores a sign-in of this browser. Returns its secrets. */
export async function beginSignin(
  tx: Writer,
  sealer: Sealer,
  given: {
    provider: Pick<Provider, "issuer" | "clientId">;
    browserToken: string;
    sessionId: string | null;
    returnTo: string;
    nowMs: number;
  },
): Promise<SigninSecrets> {
  const secrets = {
    state: newToken(TOKEN_CHARS),
    nonce: newToken(TOKEN_CHARS),
    verifier: newToken(TOKEN_CHARS),
  };
  const { issuer, clientId } = given.provider;
  await OIDC_SIGNIN.insert(tx, {
    stateHash: hashToken(secrets.state),
    browserHash: hashToken(given.browserToken),
    issuer,
    clientId,
    secrets: sealer.seal(`${secrets.nonce} ${secrets.verifier}`, SECRETS_CONTEXT),
    sessionId: given.sessionId,
    returnTo: given.returnTo,
    expiresAt: given.nowMs + OIDC_SIGNIN_LIFE_MS,
  });
  return secrets;
}

/**
 * Takes the sign-in of a state, so that the state works once. Returns null for a state that is unknown, used, expired, or of another browser. A foreign
 * browser does not use it up.
 */
export async function takeSignin(
  tx: Writer,
  sealer: Sealer,
  { state, browserToken, nowMs }: { state: string; browserToken: string | null; nowMs: number },
): Promise<PendingSignin | null> {
  if (browserToken === null) return null;
  const stateHash = hashToken(state);
  const row = await OIDC_SIGNIN.find(tx, { stateHash });
  if (row === null || row.expiresAt <= nowMs) return null;
  if (!Buffer.from(row.browserHash).equals(hashToken(browserToken))) return null;
  await OIDC_SIGNIN.delete(tx, { stateHash });
  const [nonce = "", verifier = ""] = sealer.unseal(row.secrets, SECRETS_CONTEXT).split(" ");
  const { issuer, clientId, sessionId, returnTo, expiresAt } = row;
  const begunAt = expiresAt - OIDC_SIGNIN_LIFE_MS;
  return { state, nonce, verifier, issuer, clientId, sessionId, returnTo, begunAt };
}

/** Deletes expired sign-ins; for the daily cleaning. */
export async function deleteEndedSignins(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM oidc_signin WHERE expires_at <= ?1", nowMs);
}

/** Checks a path of the dashboard to open after the sign-in. Throws `invalid_input` for anything that could lead to another site. */
export function readReturnPath(given: string): string {
  const url = URL.parse(given, "http://relay.invalid");
  const isOwn = /^\/[\x21-\x7e]*$/.test(given) && !given.includes("\\");
  // The parser removes dots, so that it can make // of /.//: this is another site for a browser.
  if (isOwn && url?.origin === "http://relay.invalid" && !url.pathname.startsWith("//"))
    return url.pathname + url.search;
  throw new Refusal(
    "invalid_input",
    "`returnTo` is not a path of the dashboard: write a path such as /apps/shop/development/home.",
  );
}
