/** People with a password and a second factor, and their codes. */
import { Secret, TOTP } from "otpauth";
import { FULL_OWNER } from "../../src/platform/account/membership.ts";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import type { Membership } from "../../src/platform/account/permission.ts";
import type { ApiServer, Call, Reply } from "./api-server.ts";

export const PASSWORD = "correct horse battery";

/** Returns the code that an authenticator app with this secret shows. `steps` moves it by time steps. */
export function codeOf(secret: string, nowMs: number, steps = 0): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: nowMs + steps * 30_000 });
}

/** Returns six digits that are none of the codes around now. */
export function wrongCode(secret: string, nowMs: number): string {
  const right = [-1, 0, 1].map((steps) => codeOf(secret, nowMs, steps));
  const wrong = ["000000", "111111", "222222", "333333"].find((code) => !right.includes(code));
  if (wrong === undefined) throw new Error("Each of four codes is right.");
  return wrong;
}

export async function addMember(api: ApiServer, email: string, memberships: readonly Membership[] = FULL_OWNER): Promise<string> {
  const passwordHash = await hashPassword(PASSWORD);
  const nowMs = api.clock.now();
  return (await api.store.write("dashboard", (tx) => createOwner(tx, { email, passwordHash, memberships, nowMs }))).id;
}

export function post(api: ApiServer, path: string, body: unknown, cookie?: string): Promise<Reply> {
  return api.call(path, { method: "POST", body, headers: { origin: api.base, ...(cookie === undefined ? {} : { cookie }) } });
}

export const signIn = (api: ApiServer, email: string): Promise<Reply> => post(api, "/api/session", { email, password: PASSWORD });

/** Returns the session of the response as a Cookie header. */
export function cookieOf(reply: Reply): string {
  return (reply.headers.getSetCookie().find((one) => one.includes("relay_session=")) ?? "").split(";")[0] ?? "";
}

interface Signed {
  id: string;
  email: string;
  cookie: string;
  call(path: string, call?: Call): Promise<Reply>;
}

/** Creates a member with a password and signs the member in. */
export async function addSigned(api: ApiServer, email: string, memberships?: readonly Membership[]): Promise<Signed> {
  const id = await addMember(api, email, memberships);
  const cookie = cookieOf(await signIn(api, email));
  return { id, email, cookie, call: (path, call = {}) => api.call(path, { ...call, headers: { origin: api.base, cookie, ...call.headers } }) };
}

interface Enrolled extends Signed {
  secret: string;
  factorId: string;
  recoveryCodes: string[];
}

/** Adds an authenticator app to a signed-in member. */
export async function enroll(api: ApiServer, person: Signed, name = "Phone"): Promise<Enrolled> {
  const begun = await person.call("/api/session/factors/totp", { method: "POST", body: { name } });
  const { id, secret } = begun.json as { id: string; secret: string };
  const body = { totp: codeOf(secret, api.clock.now(), -1) };
  const done = await person.call(`/api/session/factors/${id}/confirm`, { method: "POST", body });
  if (done.status !== 200) throw new Error(`The app was not confirmed: ${done.text}`);
  return { ...person, secret, factorId: id, recoveryCodes: done.json.recoveryCodes };
}

/** Signs in with the password and returns the token of the sign-in that waits for the factor. */
export async function beginSignin(api: ApiServer, email: string): Promise<string> {
  return (await signIn(api, email)).json.factor.token;
}
