/**
 * Runs the server, with any number of apps and their development and production environments (`relay serve`). `dev` shares the code that
 * runs a service until a signal. A server logs its start and end, and local development prints them for the user.
 */

import { type ServiceConfig, servesCookies } from "../../../base/config.ts";
import { nearHost, originOf } from "../../../base/listening.ts";
import { createLog, type Log } from "../../../base/log.ts";
import { VERSION } from "../../../base/release/version.ts";
import { StoreUnavailable } from "../../../store/port.ts";
import type { Command, Input } from "../command.ts";
import { recordRunning } from "../data-directory.ts";
import { type Io, programWord, type RunningService } from "../io.ts";
import { RUN_OPTIONS, readServiceConfig, SERVER_OPTIONS } from "../service-option.ts";
import { paint, type Screen, toneOf } from "../terminal/screen.ts";
import { collectUnderLoad, giveBackOnceQuiet } from "./gc-pacing.ts";
import { readTelemetry } from "./otel-variable.ts";
import { explainDirectory, explainListening, isPortTaken } from "./start-refusal.ts";
import { formatUnknown, listUnknownVariables } from "./unknown-variable.ts";

export const serve: Command = {
  words: ["serve"],
  summary: "run the server",
  details:
    "The server runs any number of apps, each with development and production. Behind a proxy, name the public origin with --base-url and the proxy's address with --trusted-proxy. RELAY_LIMIT_… variables raise limits, and RELAY_MASTER_KEY replaces the file master.key.",
  options: [...SERVER_OPTIONS, ...RUN_OPTIONS],
  examples: [
    "relay serve --data-dir /var/lib/relay --base-url https://relay.example.com --trusted-proxy 127.0.0.1",
  ],
  async run(input, io) {
    const config = { ...readServiceConfig("server", input, io), telemetry: readTelemetry(io.env) };
    await runService(config, input, io, async (service) => {
      io.print(`Listening  ${service.url}`);
      if (config.baseUrl !== null && config.baseUrl !== service.url) io.print(`Public     ${config.baseUrl}`);
      if (!servesCookies(config)) {
        io.print(
          `Dashboard  no owner can sign in, because sessions need https on ${config.host}: set --base-url to the https origin that browsers open`,
        );
      }
      await printSetup(service, io);
      const pacing = new AsyncDisposableStack();
      pacing.use(giveBackOnceQuiet(config.clock));
      pacing.use(collectUnderLoad(config.clock));
      return pacing;
    });
  },
};

/** Prints the setup link. If the database cannot be written now, only the link is missing: the server already listens and continues. */
async function printSetup(service: RunningService, io: Io): Promise<void> {
  try {
    const link = await service.makeSigninLink();
    if (link !== null) io.print(`Set-up     ${link}  (works once, within a day)`);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    io.print(
      "Set-up     there is no link, because the database cannot be written now: create the first owner with relay admin create, or start the server again",
    );
  }
}

/** The time that a start may take to end after a signal, because it has nothing to complete. Docker waits ten seconds by default. */
export const START_ENDS_WITHIN_MS = 6_000;
/**
 * The time that the service may take to end. It is longer than any of its calls and any wait for a lost database. Process managers may kill
 * it after half a minute.
 */
export const END_WITHIN_MS = 18_000;

/** Starts the service, calls `started` with it, and resolves once it has stopped after a signal. */
export async function runService(
  config: ServiceConfig,
  input: Input,
  io: Io,
  started: (service: RunningService) => Promise<AsyncDisposable | null>,
): Promise<void> {
  let stopping = false;
  let hasStarted = false;
  let goOn = (): void => undefined;
  const stopped = io.untilStopped().then(() => {
    stopping = true;
    if (!hasStarted)
      goOn = io.endWithin(
        START_ENDS_WITHIN_MS,
        "The start waits too long for an answer, so it ends now: start the server again.",
      );
  });
  let service: RunningService;
  try {
    service = await start(config, input, io, stopped);
    hasStarted = true;
    goOn();
  } catch (error) {
    // A user who stops a start while it waits for its disk or its database gets no error.
    if (stopping) return;
    throw error;
  }
  await using _service = service;
  const forget = recordRunning(config.dataDir, {
    url: service.baseUrl,
    near: originOf(nearHost(config.host), service.port),
    limits: { ...config.limits },
    allowPrivate: config.allowPrivate,
  });
  const log = logOf(config, io);
  try {
    await using _pacing = await started(service);
    warnUnknownVariables(log, io);
    log?.info("service started", { url: service.url, baseUrl: service.baseUrl, version: VERSION });
    await stopped;
    if (log === null) io.inform("Stopping after the running events end; press Ctrl+C again to stop at once.");
    else log.info("service stopping after the running events end");
    await service.leave();
    io.endWithin(
      END_WITHIN_MS,
      "The service waits too long for an answer, so it ends now: the next start continues the open work.",
    );
  } finally {
    forget();
  }
}

/** Warns of RELAY_… variables that nothing reads. Without the warning, a misspelled limit or address looks as if it were set. */
function warnUnknownVariables(log: Log | null, io: Io): void {
  for (const variable of listUnknownVariables(io.env)) {
    if (log === null) io.inform(`Environment variable ${variable.name}: ${formatUnknown(variable)}`);
    else log.warn(`environment variable ${variable.name}: ${formatUnknown(variable)}`);
  }
}

/** Creates the server's log. Returns null if local development prints for a person instead. */
function logOf({ mode, logFormat, clock }: ServiceConfig, io: Io): Log | null {
  if (mode === "local" && logFormat === "text") return null;
  return createLog({ clock, format: logFormat, sink: (line) => io.inform(line) });
}

async function start(
  config: ServiceConfig,
  input: Input,
  io: Io,
  stopped: Promise<void>,
): Promise<RunningService> {
  const { screen } = io;
  const printRun = (line: string): void => io.draw(paintRun(line, screen));
  const ports = { stopped, program: programWord(io), ...(screen.colour ? { printRun } : {}) };
  try {
    return await io.startService(config, ports);
  } catch (error) {
    const chosen = input.text("port") !== null || config.mode === "server";
    if (chosen || !isPortTaken(error))
      throw explainListening(error, config, io) ?? explainDirectory(error, config.dataDir, io) ?? error;
    io.inform(`Port ${config.port} is in use, so the service takes a free one; --port chooses a fixed one.`);
    return await io.startService({ ...config, port: 0 }, ports);
  }
}

/** Paints the result in the line of a run, with the colors of states. */
function paintRun(line: string, screen: Screen): string {
  return line.replace(
    /^(RELAY · .* · )(ok|failed)$/m,
    (_, before: string, word: string) => before + paint(word, toneOf(word), screen),
  );
}
