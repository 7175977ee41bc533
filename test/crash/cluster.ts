/**
 * A cluster for failure tests: nodes in separate processes, each with its own connection to one PostgreSQL, and a sender that retries each event on
 * another node until one records it. Tests read the results from the database and the sink.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { poll, untilNoneLeft } from "../kit/patience.ts";
import { signedCall } from "../kit/relay-definition.ts";

const TRY_FOR_MS = 2_000;

interface NodePlace {
  /** An empty URL selects SQLite. */
  databaseUrl: string;
  aheadMs: number;
  sinkUrl: string;
  /** A directory that outlives the node. */
  dataDir?: string;
}

export class ClusterNode {
  readonly #place: NodePlace;
  readonly #dataDir: string;
  #child: Bun.Subprocess<"ignore", "pipe", "ignore"> | null = null;
  url = "";
  /** The node's id in the database. */
  id = "";

  constructor(place: NodePlace) {
    this.#place = place;
    this.#dataDir = place.dataDir ?? mkdtempSync(join(tmpdir(), "relay-cluster-"));
  }

  /** Starts the node. Resolves once it is ready. */
  async start(): Promise<void> {
    const { databaseUrl, aheadMs, sinkUrl } = this.#place;
    const script = join(import.meta.dir, "cluster-node.ts");
    const child = Bun.spawn([process.execPath, script, this.#dataDir, databaseUrl, String(aheadMs), sinkUrl], {
      env: process.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    this.#child = child;
    let text = "";
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk);
      if (text.includes("\n")) break;
    }
    const { port } = JSON.parse(text) as { port: number };
    this.url = `http://127.0.0.1:${port}`;
    const { node } = await poll(
      async () => (await (await fetch(`${this.url}/readyz`)).json()) as { ready: boolean; node?: string },
      ({ ready }) => ready,
    );
    this.id = node ?? "";
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(name);
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }

  /** Stops the node gracefully. */
  async stop(): Promise<void> {
    this.#child?.kill("SIGTERM");
    await this.#child?.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    if (this.#place.dataDir === undefined) rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

/** Sends events of every app and relay until `end`. Each pair of app and relay sends one event after the other. */
export class Sender {
  /** The recorded ids by `<app> <relay>`, in the order of their acknowledgments. */
  readonly recorded = new Map<string, string[]>();
  readonly #nodes: readonly ClusterNode[];
  readonly #prefix: string;
  #ends = false;
  #loops: Promise<void>[] = [];

  /** `prefix` begins the ids, so that those of several senders differ. */
  constructor(nodes: readonly ClusterNode[], prefix = "") {
    this.#nodes = nodes;
    this.#prefix = prefix;
  }

  begin(apps: readonly string[], relays: readonly string[], everyMs: number): void {
    this.#loops = apps.flatMap((app) => relays.map((relay) => this.#send(app, relay, everyMs)));
  }

  async end(): Promise<number> {
    this.#ends = true;
    await Promise.all(this.#loops);
    return [...this.recorded.values()].reduce((sum, ids) => sum + ids.length, 0);
  }

  async #send(app: string, relay: string, everyMs: number): Promise<void> {
    const ids: string[] = [];
    this.recorded.set(`${app} ${relay}`, ids);
    for (let number = 0; !this.#ends; number++) {
      const id = `${this.#prefix}${app}-${relay}-${number}`;
      for (let turn = number; !(await this.#try(app, relay, id, turn)); turn++) await Bun.sleep(20);
      ids.push(id);
      await Bun.sleep(everyMs);
    }
  }

  async #try(app: string, relay: string, id: string, turn: number): Promise<boolean> {
    const node = this.#nodes[turn % this.#nodes.length];
    try {
      const call = signedCall({ id, type: "order.paid", amount: 1, email: "ada@example.com" });
      const answer = await fetch(`${node?.url}/hooks/${app}/${relay}`, { method: "POST", ...call, signal: AbortSignal.timeout(TRY_FOR_MS) });
      return answer.status === 200;
    } catch {
      return false;
    }
  }
}

/** A connection to the database that bypasses every node. */
export class Ground implements AsyncDisposable {
  readonly #url: string;
  #sql: SQL;

  constructor(url: string) {
    this.#url = url;
    this.#sql = new SQL(url, { max: 2, bigint: true });
  }

  async rows<Row>(sql: string, ...values: (string | number)[]): Promise<Row[]> {
    for (;;) {
      try {
        return (await this.#sql.unsafe(sql, values)) as Row[];
      } catch {
        await this.#sql.close({ timeout: 0 }).catch(() => undefined);
        await Bun.sleep(50);
        this.#sql = new SQL(this.#url, { max: 2, bigint: true });
      }
    }
  }

  /** Returns the milliseconds until other nodes have taken over everything that the node ran. */
  async timeTakeover(id: string): Promise<number> {
    const held = "SELECT environment_id FROM node_lease WHERE node = $1 AND until > 0";
    const begunMs = performance.now();
    if ((await untilNoneLeft(async () => (await this.rows(held, id)).length)) > 0) throw new Error(`No node takes over from ${id}.`);
    return performance.now() - begunMs;
  }

  /** Waits until no event is queued or running. */
  async untilDone(): Promise<void> {
    const open = () =>
      this.rows<{ id: bigint; state: string; attempts: bigint; reason: string | null; waitsMs: bigint | null }>(
        `SELECT seq AS id, state, attempts, reason, next_attempt_at - (extract(epoch FROM now()) * 1000)::bigint AS "waitsMs"
           FROM event WHERE state IN ('queued', 'running')`,
      );
    const left = await untilNoneLeft(async () => (await open()).length);
    const [first] = left === 0 ? [] : await open();
    if (first === undefined) return;
    const { id, state, attempts, reason, waitsMs } = first;
    throw new Error(`Stuck: ${left}, first ${id} ${state} ${reason} after ${attempts} attempts, due in ${waitsMs} ms`);
  }

  /** Ends the connections of every node. */
  async terminate(): Promise<void> {
    await this.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'relay %' AND pid <> pg_backend_pid()");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sql.close({ timeout: 0 }).catch(() => undefined);
  }
}
