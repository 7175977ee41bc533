/** Reads the answers of a server, and refuses those that no relay server of this version gives. It sends no request. */
import type { JsonObject } from "../../../base/json.ts";
import { CommandFailure } from "../command.ts";

/** Fields that an answer may leave out. Servers of earlier versions leave out `stopped`. */
const OPTIONAL: ReadonlySet<string | symbol> = new Set([
  "receiverUrl",
  "receiverSecret",
  "signingSecret",
  "previousUntil",
  "file",
  "warnings",
  "stopped",
  // Promise resolution reads `then`, and JSON.stringify reads `toJSON`.
  "then",
  "toJSON",
]);

/** Returns the answer so that reading an absent field fails, unless the field is optional. */
export function readStrictly(answer: JsonObject, url: string): JsonObject {
  return new Proxy(answer, {
    get(target, name) {
      if (typeof name === "symbol" || OPTIONAL.has(name) || Object.hasOwn(target, name))
        return Reflect.get(target, name);
      throw rejectMisread(url, `has no ${name}`);
    },
  });
}

/** The URL of the server that answered last. */
let answered: string | null = null;

export function recordAnswer(url: string): void {
  answered = url;
}

/** Returns the error to report: after an answer that the command could not read, an error that names the answer. */
export function blameAnswer(error: unknown): unknown {
  const isMisread = error instanceof TypeError || error instanceof RangeError || error instanceof URIError;
  return isMisread && answered !== null ? rejectMisread(answered, "has an unexpected form") : error;
}

/** Fails with `service_not_running` for an answer that no relay server of this version gives. */
export function rejectMisread(url: string, what: string): CommandFailure {
  return new CommandFailure(
    "service_not_running",
    `The answer of ${url} ${what}: check that --url names a relay server of this version (relay --version). RELAY_DEBUG=1 shows the code line.`,
  );
}

/** Fails with `service_not_running` for a server that lacks a route of this version. */
export function rejectOlder(url: string): CommandFailure {
  return new CommandFailure(
    "service_not_running",
    `The server at ${url} is of an earlier version, which cannot do this: update it to the version of this command (relay --version).`,
  );
}
