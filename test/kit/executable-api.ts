/** Requests to a started executable: to the management API with a key, and to its receivers. */
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
  /** The query string of the receiver's URL, with its question mark. */
  search?: string;
}

export interface Environment {
  /** Sends a management request below `/api/apps/{app}/{environment}`. */
  call(method: string, path: string, body?: unknown): Promise<ApiAnswer>;
  /** Returns up to 200 items of a list, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: items of any shape
  list(path: string): Promise<any[]>;
}

/** Creates a key next to the running service, as its operator does, and sends requests with it. */
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
