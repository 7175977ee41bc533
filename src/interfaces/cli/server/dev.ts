/** Runs local development (`relay dev`): the environment `local`, its relays and catalog from files, and a line for each run. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { startLocalSync } from "../../../operator/sync/local-sync.ts";
import { COMMAND_LINE } from "../../../platform/account/api-key.ts";
import { findLocalEnvironment } from "../../../platform/account/environment.ts";
import { listRelayRows } from "../../../rules/relay/relay.ts";
import { isSource } from "../../../rules/relay/source.ts";
import { type Command, CommandFailure } from "../command.ts";
import { type Io, programWord, type RunningService } from "../io.ts";
import { LOCAL_DATABASE, RUN_OPTIONS, readServiceConfig, SERVICE_DIR } from "../service-option.ts";
import { writeExample } from "../sync/init.ts";
import { readTelemetry } from "./otel-variable.ts";
import { runService } from "./serve.ts";

export const dev: Command = {
  words: ["dev"],
  summary: "run local development in this folder",
  details:
    "Local development receives webhooks, runs events, watches the definition files and prints a line for each run.",
  options: [
    { name: "open", help: "open the dashboard in the browser" },
    { name: "example", help: "first write an example relay, unless the service folder has relays" },
    ...RUN_OPTIONS,
    SERVICE_DIR,
  ],
  examples: ["relay dev --example", "relay dev --port 8080 --open"],
  refuses: { database: LOCAL_DATABASE },
  async run(input, io) {
    const config = { ...readServiceConfig("local", input, io), telemetry: readTelemetry(io.env) };
    const serviceDir = config.serviceDir ?? "";
    const shown = relative(io.cwd, serviceDir) || ".";
    if (input.on("example")) {
      for (const file of await writeExample(serviceDir)) io.inform(`wrote ${relative(io.cwd, file)}`);
    } else if (!existsSync(serviceDir)) {
      io.inform(
        `There is no folder ${shown}/ yet: create the first relay in the dashboard, or run ${programWord(io)} init for a working example.`,
      );
    }
    await addToGitignore(config.dataDir);
    await runService(config, input, io, async (service) => {
      const environment = await readLocalEnvironment(service);
      const sync = await startLocalSync({
        store: service.store,
        environment,
        actor: COMMAND_LINE,
        serviceDir,
        sealer: service.sealer,
        baseUrl: service.baseUrl,
        limits: config.limits,
        clock: io.clock,
        recordDue: service.scheduler.recordDue,
        print: (line) => io.inform(line),
        findChangedCases: (relayNames) => service.findChangedCases(environment, relayNames),
      });
      service.useFolder(sync);
      await printAddresses(service, environment, shown, io);
      const link = await service.makeSigninLink();
      if (link !== null) {
        io.print(`Dashboard  ${link}  (works once, within 10 minutes)`);
        if (input.on("open") && !(await io.openBrowser(link, config.dataDir))) {
          io.inform("No browser is available here: open the dashboard's address yourself.");
        }
      }
      io.inform("Press Ctrl+C to stop.");
      return sync;
    });
  },
};

/** Keeps the data directory of local development out of Git, because it belongs to this machine only. */
async function addToGitignore(dataDir: string): Promise<void> {
  if (existsSync(dataDir)) return;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writeFile(join(dataDir, ".gitignore"), "*\n", { flag: "wx" });
}

async function readLocalEnvironment({ store }: RunningService) {
  return await store.read(async (tx) => {
    const local = await findLocalEnvironment(tx);
    if (local !== null) return local;
    throw new CommandFailure(
      "database_refused",
      "This data directory belongs to a server, not to local development: name another one with --data-dir.",
    );
  });
}

/** Prints the receiver URLs, and the command that sends a signed event to the first. */
async function printAddresses(
  service: RunningService,
  environment: { id: number; appId: string },
  shown: string,
  io: Io,
): Promise<void> {
  const rows = await service.store.read((tx) => listRelayRows(tx, environment.id));
  const receivers = rows.filter((row) => isSource(row.definition));
  io.print(`Relays     ${rows.length} in ${shown}/relays, watched`);
  for (const { name } of receivers) {
    io.print(`Receiver   ${service.baseUrl}/hooks/${environment.appId}/${name}`);
  }
  if (existsSync(join(io.cwd, shown, "public"))) {
    io.print(`Pages      http://localhost:${service.port}/public/ from ${shown}/public`);
  }
  const first = receivers[0];
  if (first !== undefined) io.print(`Try it     ${programWord(io)} send ${first.name}`);
}
