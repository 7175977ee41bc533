/** Makes a temporary receiver URL and prints each request that it receives, with its guesses (`relay capture`). The end deletes the requests. */
import { sleep } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import type { CaptureView } from "../../../engine/receiver/request-capture.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { rejectOlder } from "../api/read-answer.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { JSON_OUTPUT, readRunningUrl } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readDataDir } from "../service-option.ts";
import { guessRequest, readSecret, SECRET_STDIN, writeGuess } from "./guess.ts";

/** The time between reads. A command reads a data directory more often than it asks a server. */
const LOCAL_PERIOD_MS = 500;
const REMOTE_PERIOD_MS = 2_000;
const RETRY_WAITS_MS = [1_000, 3_000, 10_000, 30_000];

export const capture: Command = {
  words: ["capture"],
  summary: "make a URL for an hour, and show what arrives",
  details:
    "The command prints the URL. Enter it at the provider, and let the provider send an event. Each request is printed with its headers, its body and the guesses of relay guess. Relay stores at most 20 requests. Ctrl+C deletes them and ends the URL; after an hour Relay does so by itself. The service must run. With --json, each line is one JSON object.",
  options: [{ name: "once", help: "stop after the first request" }, SECRET_STDIN, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay capture", "relay capture --once --json", "relay capture --secret-stdin < secret.txt"],
  async run(input, io) {
    const secret = await readSecret(input, io);
    await withApi("write", input, io, async (api) => {
      if (api.isLocal) requireRunning(readDataDir(input, io));
      const opened = await openCapture(api);
      try {
        await printRequests(api, input, io, { opened, secret });
      } finally {
        await deleteCapture(api, io, opened.id);
      }
    });
  },
};

async function openCapture(api: Api): Promise<CaptureView> {
  try {
    return (await api.request<{ capture: CaptureView }>("POST", "/captures", {})).capture;
  } catch (error) {
    if (error instanceof Refusal && error.code === "not_found") throw rejectOlder(api.url);
    throw error;
  }
}

/** Throws if no service on the data directory could receive a request. */
function requireRunning(dataDir: string): void {
  if (readRunningUrl(dataDir) !== null) return;
  throw new CommandFailure(
    "service_not_running",
    `No service runs on ${dataDir}, so no request can arrive: start it with relay dev or relay serve, then capture again.`,
  );
}

async function printRequests(
  api: Api,
  input: Input,
  io: Io,
  { opened, secret }: { opened: CaptureView; secret: string | null },
): Promise<void> {
  const stop = { now: false };
  const stopped = io.untilStopped().then(() => {
    stop.now = true;
  });
  const { id, url, expiresAt } = opened;
  if (input.on("json")) io.print(writeJson({ capture: { id, url, expiresAt } }));
  else io.print(url);
  io.inform(`Enter this URL at the provider. It takes requests until ${expiresAt}; press Ctrl+C to stop.`);
  let printed = 0;
  while (!stop.now) {
    const now = await readSoon(api, io, id, stopped);
    if (now === null) return io.inform("The capture is over. Its requests are deleted.");
    for (const request of now.requests.slice(printed)) {
      await printRequest(api, input, io, { request, url, secret });
      printed += 1;
      if (input.on("once")) return;
    }
    if (now.isFull) return io.inform("The capture is full and stores no further request.");
    await Promise.race([stopped, sleep(io.clock, api.isLocal ? LOCAL_PERIOD_MS : REMOTE_PERIOD_MS)]);
  }
}

/** Reads the capture, and reads it again if the server does not answer, because one that restarts keeps the capture. */
async function readSoon(api: Api, io: Io, id: string, stopped: Promise<void>): Promise<CaptureView | null> {
  for (const waitMs of RETRY_WAITS_MS) {
    try {
      return await readCapture(api, id);
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code !== "service_not_running") throw error;
      io.inform(`${error.message} The next attempt is in ${waitMs / 1_000} seconds.`);
    }
    await Promise.race([stopped, sleep(io.clock, waitMs)]);
  }
  return await readCapture(api, id);
}

/** Returns null where the capture ended or was deleted. */
async function readCapture(api: Api, id: string): Promise<CaptureView | null> {
  try {
    return (await api.request<{ capture: CaptureView }>("GET", `/captures/${id}`)).capture;
  } catch (error) {
    if (error instanceof Refusal && error.code === "not_found") return null;
    throw error;
  }
}

/** The codes with which a guess refuses a request itself. */
const REFUSED_REQUEST: ReadonlySet<string> = new Set(["invalid_input", "body_too_large"]);

async function printRequest(
  api: Api,
  input: Input,
  io: Io,
  { request, url, secret }: { request: CaptureView["requests"][number]; url: string; secret: string | null },
): Promise<void> {
  const { method, search, headers, contentType, body, at, id } = request;
  const guessed = await guessRequest(api, { body, headers, contentType, search, url }, secret).catch(
    (error: unknown) => {
      // One request that cannot be guessed, such as a binary body, must not end the capture.
      if (error instanceof Refusal && REFUSED_REQUEST.has(error.code)) return error;
      throw error;
    },
  );
  const isGuessed = !(guessed instanceof Refusal);
  if (!isGuessed) io.inform(`Request ${id} cannot be guessed: ${guessed.message}`);
  if (input.on("json")) return io.print(writeJson({ request, guess: isGuessed ? guessed : null }));
  const lines = [
    "",
    `Request ${id} at ${at}`,
    `${method} ${search === "" ? "without a query" : search}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    // The indent distinguishes a line of the body from a line of the command, which a stranger could imitate.
    ...(body === "" ? ["(no body)"] : body.split("\n").map((line) => `    ${line}`)),
    ...(isGuessed ? ["", ...writeGuess(guessed), "", ...writeJson(guessed.definition, 2).split("\n")] : []),
  ];
  io.print(lines.join("\n"));
}

async function deleteCapture(api: Api, io: Io, id: string): Promise<void> {
  try {
    await api.request("DELETE", `/captures/${id}`);
  } catch (error) {
    if (error instanceof Refusal && error.code === "not_found") return;
    io.inform("The capture could not be deleted now. Relay deletes it when its hour is over.");
  }
}
