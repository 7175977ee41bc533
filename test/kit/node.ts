/** Complete services that share one PostgreSQL. Each has real HTTP, the real clock and a fake outbound caller. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceConfig } from "../../src/base/config.ts";
import { readDatabaseUrl } from "../../src/base/database-url.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { type EnvironmentName, requireEnvironment } from "../../src/platform/account/environment.ts";
import { type Service, type ServicePorts, startService } from "../../src/service.ts";
import { FakeCaller } from "./fake-caller.ts";
import { HOOK_SECRET, signedCall } from "./relay-definition.ts";
import { serviceConfig } from "./service-config.ts";

/** 32 bytes in hex. Every node has the same key. */
const MASTER_KEY = "5a".repeat(32);

export interface Node extends AsyncDisposable {
  service: Service;
  caller: FakeCaller;
  /** The printed lines of every run so far. */
  lines: string[];
  logged: string[];
}

/** Starts a node. `given` is a data directory that outlives the node. An empty `databaseUrl` selects SQLite. */
export async function startNode(databaseUrl: string, given?: string, config: Partial<ServiceConfig> = {}): Promise<Node> {
  const dataDir = given ?? (await mkdtemp(join(tmpdir(), "relay-node-")));
  const caller = new FakeCaller();
  const lines: string[] = [];
  const logged: string[] = [];
  const service = await serveNode(
    { dataDir, databaseUrl, config },
    { caller, printRun: (line) => lines.push(line), logSink: (line) => logged.push(line) },
  );
  let ended: Promise<void> | null = null;
  const end = async (): Promise<void> => {
    await service[Symbol.asyncDispose]();
    if (given === undefined) await rm(dataDir, { recursive: true, force: true });
  };
  return { service, caller, lines, logged, [Symbol.asyncDispose]: () => (ended ??= end()) };
}

/** Starts a node's service, in this process or in a separate one. */
export function serveNode(
  { dataDir, databaseUrl, config }: { dataDir: string; databaseUrl: string; config?: Partial<ServiceConfig> },
  ports: ServicePorts,
): Promise<Service> {
  const database = databaseUrl === "" ? null : readDatabaseUrl(databaseUrl);
  if (typeof database === "string") throw new Error(database);
  return startService(serviceConfig(dataDir, { database, masterKey: MASTER_KEY, ...config }), ports);
}

/** An environment with a secret key that every node accepts. */
export interface Tenant {
  app: string;
  name: EnvironmentName;
  id: number;
  key: string;
}

export async function makeTenants(node: Pick<Node, "service">, app: string, names: readonly EnvironmentName[]): Promise<Tenant[]> {
  const { store } = node.service;
  const nowMs = Date.now();
  await store.write("app", (tx) => createApp(tx, { id: app, name: app, environments: names, nowMs }));
  const tenants: Tenant[] = [];
  for (const name of names) {
    const environment = await store.read((tx) => requireEnvironment(tx, app, name));
    const made = await store.write("app", (tx) => mintApiKey(tx, { environment, kind: "secret", name: "test", nowMs }));
    tenants.push({ app, name, id: environment.id, key: made.token });
  }
  return tenants;
}

/** Sends a management request below `{E}` to this node and returns the response's body. */
export async function callApi(node: { service: { url: string } }, tenant: Tenant, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${node.service.url}/api/apps/${tenant.app}/${tenant.name}${path}`, {
    method,
    headers: { authorization: `Bearer ${tenant.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer: unknown = text === "" ? null : JSON.parse(text);
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

/** Saves a receiver. Its name must be unique in the app, because these receivers share one secret. */
export async function saveReceiver(node: Pick<Node, "service">, tenant: Tenant, definition: Record<string, unknown>): Promise<void> {
  await callApi(node, tenant, "POST", "/relays", { definition, secret: HOOK_SECRET });
}

/** Posts a signed event to a receiver on this node. Throws unless the event is recorded. */
export async function post(node: Pick<Node, "service">, tenant: Tenant, relay: string, id: string): Promise<void> {
  const response = await fetch(`${node.service.url}/hooks/${tenant.app}/${relay}`, {
    method: "POST",
    ...signedCall({ id, type: "order.paid", amount: 1 }),
  });
  if (response.status !== 200) throw new Error(`${id}: ${response.status} ${await response.text()}`);
}
