/** Calls to a started executable: the management API with a key, and what an environment holds. */
import type { Executable, StartedExecutable } from "./executable.ts";

interface ApiAnswer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape and asserts what it finds
  body: any;
}

/** A request as a provider sends it to a receiver. */
export interface SentRequest {
  headers: Record<string, string>;
  body: string;
  /** After the receiver's URL, its question mark included. */
  search?: string;
}

export interface Environment {
  /** A management call below `/api/apps/{app}/{environment}`. */
  call(method: string, path: string, body?: unknown): Promise<ApiAnswer>;
  /** Everything a list holds, up to 200, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: items of any shape
  list(path: string): Promise<any[]>;
}

/** Makes a key beside the running service, the way its operator does, and calls with it. */
export async function openEnvironment(
  executable: Executable,
  service: StartedExecutable,
  cwd: string,
  at: { app: string; environment: string } = { app: "local", environment: "local" },
): Promise<Environment> {
  const made = await executable.run(["keys", "create", "--app", at.app, "--environment", at.environment, "--name", "test"], { cwd });
  if (made.code !== 0) throw new Error(`No key was made: ${made.told}`);
  const call = async (method: string, path: string, body?: unknown): Promise<ApiAnswer> => {
    const response = await fetch(`${service.url}/api/apps/${at.app}/${at.environment}${path}`, {
      method,
      headers: { authorization: `Bearer ${made.said.trim()}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  };
  return {
    call,
    async list(path) {
      const answer = await call("GET", `${path}${path.includes("?") ? "&" : "?"}limit=200`);
      if (answer.status !== 200) throw new Error(`${path} answered ${JSON.stringify(answer)}`);
      return answer.body.items;
    },
  };
}

/** Posts to a receiver as a provider does. */
export async function postHook(service: StartedExecutable, relay: string, sent: SentRequest, app = "local"): Promise<ApiAnswer> {
  const response = await fetch(`${service.url}/hooks/${app}/${relay}${sent.search ?? ""}`, {
    method: "POST",
    headers: sent.headers,
    body: sent.body,
  });
  return { status: response.status, body: await response.json() };
}
