/** A client of an app: it sends requests below /client with an app key, and signs people in with the emailed code. */
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import type { ApiServer, Reply } from "./api-server.ts";

export const LIVE_ORIGIN = "https://shop.example.com";

interface Visitor {
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
}

/** Sends requests with this app key and, if given, as the person of this session. */
export function visitor(api: ApiServer, key: string, session: string | null = null): Visitor {
  const who = session === null ? {} : { authorization: `Bearer ${session}` };
  return {
    call: (method, path, body, headers = {}) =>
      api.call(`/client${path}`, {
        method,
        headers: { "x-app-key": key, ...who, ...headers },
        ...(body === undefined ? {} : { body }),
      }),
  };
}

/** Returns the code in the newest email to an address. */
export function mailedCode(api: ApiServer, email: string): string {
  const mail = api.mail.sent.findLast(({ to }) => to === email);
  const code = /^\d{6}/.exec(mail?.text ?? "")?.[0];
  if (code === undefined) throw new Error(`No code was mailed to ${email}.`);
  return code;
}

export interface SignedIn extends Visitor {
  id: string;
  token: string;
}

/** Signs a person in to the development environment. It needs mode local, where email needs no sender domain. */
export async function signIn(api: ApiServer, email: string, key = api.keys.app): Promise<SignedIn> {
  const stranger = visitor(api, key);
  await stranger.call("POST", "/auth/code", { email });
  const code = mailedCode(api, email);
  const reply = await stranger.call("POST", "/auth/session", { email, code });
  if (reply.status !== 201) throw new Error(`${email} was not signed in: ${reply.text}`);
  const { token, person } = reply.json;
  return { id: person.id, token, ...visitor(api, key, token) };
}

/** Creates an app key that counts as used now. */
export async function mintAppKey(api: ApiServer, name: EnvironmentName & keyof ApiServer["environments"], origins: string[] = []): Promise<string> {
  const environment = api.environments[name];
  const { token } = await api.store.write("app", async (tx) => {
    const nowMs = api.clock.now();
    const made = await mintApiKey(tx, { environment, kind: "app", name: "page", origins, nowMs });
    await tx.run("UPDATE api_key SET last_used_at = ?1", nowMs);
    return made;
  });
  return token;
}

/** Sends a management request with the development environment's secret key. Throws unless the API accepts it. */
export async function manage(api: ApiServer, method: string, path: string, body?: unknown) {
  const reply = await api.call(api.E + path, {
    method,
    key: api.keys.dev,
    ...(body === undefined ? {} : { body }),
  });
  if (reply.status >= 300) throw new Error(`${method} ${path} was refused: ${reply.text}`);
  return reply.json;
}
