/**
 * The service that a command speaks to over HTTP: the server that RELAY_URL names, with RELAY_KEY, or the one that runs on the data directory,
 * with a key that the directory's master key gives. Nothing is kept of either.
 */
import { actorWords, COMMAND_LINE } from "../account/api-key.ts";
import { requireCommandKey } from "../account/command-key.ts";
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../ground/json.ts";
import { type Problem, Refusal } from "../ground/refusal.ts";
import { plain } from "../ground/text.ts";
import { errorCode } from "../outbound/connect.ts";
import { loadMasterKey } from "../secret/master-key.ts";
import { Sealer } from "../secret/seal.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../store/lock.ts";
import { writeAudit } from "../watch/audit.ts";
import { CommandFailure, type Input, type Option, UsageError } from "./command.ts";
import { readRunningUrl, withEnvironment } from "./data-directory.ts";
import { toRefusalCode } from "./refusal-words.ts";
import { readDataDir } from "./service-option.ts";
import type { World } from "./world.ts";

export const SERVER_URL: Option = {
  name: "url",
  value: "<url>",
  env: "RELAY_URL",
  otherwise: "the service of the data directory",
  help: "a server elsewhere; its secret key is read from RELAY_KEY",
};

const TIMEOUT_MS = 60_000;

export interface Remote {
  /** Its origin, without a trailing slash. */
  url: string;
  /** `/api/apps/{appId}/{environment}` of the key. */
  place: string;
  key: string;
}

/** Fails where none is named or runs. `name`: what the command's own key is called where the data directory gives one. */
export async function findRemote(input: Input, world: World, name: string): Promise<Remote> {
  const url = input.text("url");
  return url === null ? await findOwn(input, world, name) : await findServer(url, world.env.RELAY_KEY ?? "");
}

/** The server at this address, and the environment of the key. */
export async function findServer(text: string, key: string): Promise<Remote> {
  const url = text.replace(/\/+$/, "");
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.origin !== url.toLowerCase())
    throw new UsageError(
      `--url is ${JSON.stringify(text)}: write the server's origin, such as https://relay.example.com.`,
    );
  if (key === "")
    throw new CommandFailure(
      "unauthenticated",
      `No key for ${url} is given: set RELAY_KEY to a secret key of the environment; relay keys create makes one on the server.`,
    );
  const { status, text: body } = await callRemote({ url, key }, "GET", "/api/key");
  const known = readObject(body);
  if (status !== 200)
    throw new CommandFailure(
      toRefusalCode(known.code),
      String(known.message ?? `${url} answered ${status}.`),
    );
  return { url, key, place: `/api/apps/${known.app}/${known.environment}` };
}

async function findOwn(input: Input, world: World, name: string): Promise<Remote> {
  const dataDir = readDataDir(input, world);
  const sealer = new Sealer(await loadMasterKey(dataDir, world.env.RELAY_MASTER_KEY || null));
  return await withEnvironment(input, world, async (store, environment) => {
    const url = readRunningUrl(dataDir);
    if (url === null || !isHeld(dataDir, world))
      throw new CommandFailure(
        "service_not_running",
        `No service runs on ${dataDir}: start one with relay dev or relay serve, or name a server with RELAY_URL and RELAY_KEY.`,
      );
    const nowMs = world.clock.now();
    const digest = (text: string): Uint8Array => sealer.digest(text);
    const key = await store.write("dashboard", async (tx) => {
      const { token, made } = await requireCommandKey(tx, { environment, name, nowMs, digest });
      if (made !== null)
        await writeAudit(tx, {
          environmentId: environment.id,
          nowMs,
          by: actorWords(COMMAND_LINE),
          action: "key.created",
          target: `key:${made.id}`,
          after: { kind: made.kind, name: made.name, hint: made.hint, origins: made.origins },
        });
      return token;
    });
    return { url, key, place: `/api/apps/${environment.appId}/${environment.name}` };
  });
}

/** Whether a service runs there: the note of one that was killed stays, and whoever listens there now is to get no key. */
function isHeld(dataDir: string, world: World): boolean {
  try {
    lockDataDirectory(dataDir, "a relay command", world.clock.now()).release();
    return false;
  } catch (error) {
    if (error instanceof DataDirectoryTaken) return true;
    throw error;
  }
}

/** Calls it. Fails with `service_not_running` where nothing answers. A redirect is an answer: the key goes nowhere else. */
export async function callRemote(
  { url, key }: Pick<Remote, "url" | "key">,
  method: string,
  path: string,
  sent: string | null = null,
): Promise<{ status: number; text: string }> {
  try {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const body = sent === null ? {} : { body: sent };
    const answer = await fetch(`${url}${path}`, { method, headers, redirect: "manual", signal, ...body });
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    throw new CommandFailure(
      "service_not_running",
      `Nothing answered at ${url} (${errorCode(error)}): start the service, or name the right address.`,
    );
  }
}

/** A POST below `{E}`, its answer as that route's schema says. Refuses as the server does. */
export async function postRemote<Answer>(remote: Remote, path: string, sent: unknown): Promise<Answer> {
  const { url, place } = remote;
  const { status, text } = await callRemote(remote, "POST", `${place}${path}`, writeJson(sent));
  const answer = readObject(text);
  if (status === 200) return answer as Answer;
  const { code, message, problems, resetAt } = answer;
  if (typeof code !== "string" || typeof message !== "string")
    throw new CommandFailure(
      "service_not_running",
      `What answered at ${url} (${status}) is no relay server: check --url.`,
    );
  const resetAtMs = typeof resetAt === "string" ? Date.parse(resetAt) : Number.NaN;
  throw new Refusal(toRefusalCode(code), plain(message), {
    ...(Array.isArray(problems) ? { problems: problems as unknown as Problem[] } : {}),
    ...(Number.isNaN(resetAtMs) ? {} : { resetAtMs }),
  });
}

/** The object that a text holds; an empty one for what is none. */
export function readObject(text: string): JsonObject {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
