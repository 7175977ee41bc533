/** A complete service in this process, with real HTTP, a real database and a clock that the test moves. Tests advance the time and never sleep. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceConfig } from "../../src/base/config.ts";
import { type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { type Service, type ServicePorts, startService } from "../../src/service.ts";
import type { SqlValue } from "../../src/store/port.ts";
import { chooseDatabase, ON_POSTGRES } from "./chosen-store.ts";
import { type DirectDatabase, openDirectDatabase } from "./direct-database.ts";
import { PATIENCE_MS } from "./patience.ts";
import { pendingWorkError, trackPendingWork } from "./pending-work.ts";
import { placeSchema } from "./schema-copy.ts";
import { serviceConfig } from "./service-config.ts";
import { START_MS, settle, VirtualClock } from "./virtual-clock.ts";

export const APP = "app_test";

const BUSY_TURNS = 200;

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape and asserts what it finds
  body: any;
  headers: Headers;
}

export interface RunningService extends BareService {
  /** Secret keys by environment. */
  keys: Readonly<Record<string, string>>;
  /** Sends a management request below `{E}` of the environment (default development). */
  api(method: string, path: string, body?: unknown, environment?: EnvironmentName): Promise<Answer>;
  /** Sends a request to the receiver at `/hooks/app_test/<name>`. */
  hook(name: string, init: { headers: Record<string, string>; body: string | Uint8Array; search?: string }): Promise<Answer>;
  /** Waits until no event that can run now is queued or running. */
  drain(): Promise<void>;
}

export interface RunningOptions {
  config?: Partial<ServiceConfig>;
  ports?: ServicePorts;
  environments?: readonly EnvironmentName[];
}

/** A service without an app, and the clock and the ports that it uses. */
export interface BareService extends AsyncDisposable {
  readonly service: Service;
  dataDir: string;
  /** Variables with which a command in that folder uses this service's database. */
  commandEnv: Record<string, string>;
  clock: VirtualClock;
  /** The printed lines of every run so far. */
  lines: string[];
  /** The lines of the log so far. */
  logged: string[];
  rows<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]>;
  /** Access to the database that bypasses the service. */
  direct: DirectDatabase;
  /** Stops the service and starts another one on the same data. `onStopped` runs in between. */
  restart(onStopped?: () => void): Promise<void>;
}

export async function startBareService(options: Omit<RunningOptions, "environments"> = {}): Promise<BareService> {
  const dataDir = options.config?.dataDir ?? (await mkdtemp(join(tmpdir(), "relay-test-")));
  // A test that passes a folder uses the database file in it.
  const chosen = ON_POSTGRES && options.config?.dataDir === undefined ? await chooseDatabase() : null;
  if (chosen === null && options.config?.dataDir === undefined) await placeSchema(join(dataDir, "relay.db"));
  const clock = new VirtualClock(START_MS);
  const lines: string[] = [];
  const logged: string[] = [];
  const config = serviceConfig(dataDir, {
    database: chosen?.database ?? null,
    baseUrl: "https://relay.example.test",
    clock,
    ...options.config,
  });
  const ports: ServicePorts = {
    printRun: (line) => lines.push(line),
    logSink: (line) => logged.push(line),
    ...options.ports,
  };
  let service = await startService(config, ports);
  const forget = trackPendingWork({
    clock,
    logged,
    get service() {
      return service;
    },
  });
  return {
    get service() {
      return service;
    },
    dataDir,
    commandEnv: chosen === null ? {} : { RELAY_DATABASE: chosen.url },
    clock,
    lines,
    logged,
    rows: (sql, ...values) => service.store.read((tx) => tx.all(sql, ...values)),
    direct: openDirectDatabase(chosen ?? { file: join(dataDir, "relay.db") }, () => service.store),
    async restart(onStopped) {
      await service[Symbol.asyncDispose]();
      onStopped?.();
      service = await startService(config, ports);
    },
    async [Symbol.asyncDispose]() {
      forget();
      let isOpen = true;
      const ended = Promise.resolve(service[Symbol.asyncDispose]()).finally(() => {
        isOpen = false;
      });
      // A request without a response, or a body that no client reads, holds the service open until its clock passes the limits.
      while (isOpen) {
        await Promise.race([ended, Bun.sleep(1_000)]);
        if (isOpen) await clock.advance(10_000);
      }
      await ended;
      await chosen?.dispose();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export async function startRunningService(options: RunningOptions = {}): Promise<RunningService> {
  const bare = await startBareService(options);
  const keys = await makeKeys(bare.service, options.environments ?? ["development"], bare.clock.now());
  await untilHeld();
  return {
    ...bare,
    get service() {
      return bare.service;
    },
    keys,
    async api(method, path, body, environment = "development") {
      const response = await fetch(`${bare.service.url}/api/apps/${APP}/${environment}${path}`, {
        method,
        headers: { authorization: `Bearer ${keys[environment]}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: writeJson(body) }),
      });
      return readAnswer(response);
    },
    async hook(name, { headers, body, search = "" }) {
      const response = await fetch(`${bare.service.url}/hooks/${APP}/${name}${search}`, { method: "POST", headers, body: body as BodyInit });
      return readAnswer(response);
    },
    async drain() {
      const deadline = performance.now() + PATIENCE_MS;
      for (let turn = 0; performance.now() < deadline; turn++) {
        // Work outside of this process, such as looking up a name, takes time and not turns of the event loop.
        if (turn > BUSY_TURNS) await Bun.sleep(1);
        // After a failure of its store, the runner retries by the clock, which does not move here.
        if (turn > BUSY_TURNS && !bare.service.runner.alive) bare.service.runner.wake();
        await settle();
        const [waiting] = await bare.rows<{ count: number }>(
          "SELECT count(*) AS count FROM event WHERE state = 'running' OR (state = 'queued' AND next_attempt_at IS NULL AND relay_key IN (SELECT key FROM relay_key JOIN relay ON relay.id = relay_id JOIN environment ON environment.id = relay.environment_id WHERE state = 'active' AND held_at IS NULL))",
        );
        if (waiting?.count !== 0) continue;
        // Other connections can see a commit before the service's own process gets its answer.
        await settle();
        return;
      }
      throw await pendingWorkError("The service did not come to rest.");
    },
  };
}

/** Waits until a node of a cluster has taken over a new environment and the events that wait in it. */
export async function untilHeld(): Promise<void> {
  if (ON_POSTGRES) await settle();
}

async function makeKeys(service: Service, names: readonly EnvironmentName[], nowMs: number): Promise<Record<string, string>> {
  const { environments } = await service.store.write("app", (tx) => createApp(tx, { id: APP, name: "Test", environments: names, nowMs }));
  const keys: Record<string, string> = {};
  for (const environment of environments) {
    const made = await service.store.write("app", (tx) => mintApiKey(tx, { environment, kind: "secret", name: "test", nowMs }));
    keys[environment.name] = made.token;
  }
  return keys;
}

async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  let body: Json | string = text;
  try {
    body = parseJson(text);
  } catch {}
  return { status: response.status, body, headers: response.headers };
}
