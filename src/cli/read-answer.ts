/**
 * Reads what a server answered a command, and says so where that is no answer of a relay server: another server, another version, or one that
 * lies. It never asks a server.
 */
import type { JsonObject } from "../ground/json.ts";
import { CommandFailure } from "./command.ts";

/** Fields that an answer may leave out; `stopped` is one that servers of earlier versions do. */
const OPTIONAL: ReadonlySet<string | symbol> = new Set([
  "receiverUrl",
  "receiverSecret",
  "signingSecret",
  "previousUntil",
  "file",
  "warnings",
  "stopped",
  // A promise looks for the one in what it resolves to, and writing it as JSON for the other.
  "then",
  "toJSON",
]);

/** The answer, of which every other field that a command reads is there. */
export function readStrictly(answer: JsonObject, url: string): JsonObject {
  return new Proxy(answer, {
    get(target, name) {
      if (typeof name === "symbol" || OPTIONAL.has(name) || Object.hasOwn(target, name))
        return Reflect.get(target, name);
      throw refuseMisread(url, `has no ${name}`);
    },
  });
}

/** The server that answered last. */
let answered: string | null = null;

export function noteAnswer(url: string): void {
  answered = url;
}

/** What ends a command: where a server answered and the command could not read that, it is the answer that is said to be wrong. */
export function blameAnswer(error: unknown): unknown {
  const isMisread = error instanceof TypeError || error instanceof RangeError || error instanceof URIError;
  return isMisread && answered !== null ? refuseMisread(answered, "is not what this command reads") : error;
}

/** Fails with `service_not_running` for an answer that no relay server of this version gives. */
export function refuseMisread(url: string, what: string): CommandFailure {
  return new CommandFailure(
    "service_not_running",
    `What ${url} answered ${what}: check that --url names a relay server, and that it has this version (relay --version); RELAY_DEBUG=1 shows where.`,
  );
}
