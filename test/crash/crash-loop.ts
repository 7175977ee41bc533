/**
 * Kills a loaded service again and again, restarts it, lets it come to rest, and holds what it did against a model made from the
 * acknowledged events alone.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashEvent, makeCrashEvent, signCrashEvent } from "./crash-relay.ts";

const SENDERS = 12;
const REST_WITHIN_MS = 60_000;

export interface CrashReport {
  kills: number;
  acknowledged: number;
  /** One sentence each; empty when every promise was kept. */
  broken: string[];
}

interface ServiceProcess {
  port: number;
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

/** Compiles test/crash/service-process.ts, so that what is killed is an executable and starts as fast as one. */
async function compileService(executable: string): Promise<void> {
  const script = join(import.meta.dir, "service-process.ts");
  const command = [process.execPath, "build", "--compile", "--minify", script, "--outfile", executable];
  const build = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  if ((await build.exited) !== 0)
    throw new Error(`The service did not compile: ${await new Response(build.stderr).text()}`);
}

/** Starts it and waits until it listens. */
async function startProcess(executable: string, dataDir: string, sinkUrl: string): Promise<ServiceProcess> {
  const child = Bun.spawn([executable, dataDir, sinkUrl], { stdout: "pipe", stderr: "pipe" });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The service did not start: ${await new Response(child.stderr).text()}`);
    text += new TextDecoder().decode(value);
  }
  const rest = async (): Promise<void> => {
    for (;;) if ((await reader.read()).done) return;
  };
  void rest().catch(() => undefined);
  return {
    port: (JSON.parse(text.split("\n")[0] ?? "{}") as { port: number }).port,
    async kill(signal) {
      child.kill(signal);
      await child.exited;
    },
  };
}

/** Runs `kills` rounds: start, load, SIGKILL at a random moment; then the last start, the rest, the comparison. */
export async function runCrashLoop(kills: number, random: () => number): Promise<CrashReport> {
  const folder = mkdtempSync(join(tmpdir(), "relay-crash-"));
  const dataDir = join(folder, "data");
  const executable = join(folder, "service");
  await compileService(executable);
  const acknowledged = new Map<string, CrashEvent>();
  const delivered = new Map<string, number>();
  let onDelivery: (() => void) | null = null;
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const notice = (await request.json()) as { event: { mapped: { event_id: string } } };
      const id = notice.event.mapped.event_id;
      delivered.set(id, (delivered.get(id) ?? 0) + 1);
      onDelivery?.();
      return new Response("ok");
    },
  });
  const sinkUrl = `http://127.0.0.1:${sink.port}/`;
  let number = 0;
  try {
    for (let round = 0; round < kills; round++) {
      const service = await startProcess(executable, dataDir, sinkUrl);
      let killed = false;
      const senders = Array.from({ length: SENDERS }, async () => {
        while (!killed) {
          const event = makeCrashEvent(number++);
          if (await send(service.port, event)) acknowledged.set(event.id, event);
        }
      });
      await chooseMoment(round, random, (work) => {
        onDelivery = work;
      });
      onDelivery = null;
      const dead = service.kill("SIGKILL");
      killed = true;
      await dead;
      await Promise.all(senders);
    }
    const service = await startProcess(executable, dataDir, sinkUrl);
    await waitForRest(join(dataDir, "relay.db"));
    await service.kill("SIGTERM");
    using database = new Database(join(dataDir, "relay.db"), { readonly: true });
    return { kills, acknowledged: acknowledged.size, broken: compare(database, acknowledged, delivered) };
  } finally {
    await sink.stop(true);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function send(port: number, event: CrashEvent): Promise<boolean> {
  try {
    const { headers, body } = signCrashEvent(event);
    const response = await fetch(`http://127.0.0.1:${port}/hooks/local/${event.relay}`, {
      method: "POST",
      headers,
      body,
    });
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Mostly any moment of the first tenth of a second; every third time the moment a notice is out and its outcome is not recorded. */
async function chooseMoment(
  round: number,
  random: () => number,
  listen: (work: () => void) => void,
): Promise<void> {
  const delayMs = random() * 120;
  if (round % 3 !== 2) return Bun.sleep(delayMs);
  let left = Math.floor(random() * 6) + 1;
  const reached = new Promise<void>((resolve) => {
    listen(() => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
  await Promise.race([reached, Bun.sleep(1_000)]);
}

async function waitForRest(file: string): Promise<void> {
  using database = new Database(file, { readonly: true });
  const unfinished = database.query<{ count: number }, []>(
    "SELECT count(*) AS count FROM event WHERE state IN ('queued', 'running') AND next_attempt_at IS NULL",
  );
  const deadline = performance.now() + REST_WITHIN_MS;
  while (performance.now() < deadline) {
    if (unfinished.get()?.count === 0) return;
    await Bun.sleep(50);
  }
}

/** Every promise that was broken. */
function compare(
  database: Database,
  acknowledged: ReadonlyMap<string, CrashEvent>,
  delivered: ReadonlyMap<string, number>,
): string[] {
  const broken: string[] = [];
  const events = database
    .query<{ id: string; relay: CrashEvent["relay"]; state: string; reason: string | null }, []>(
      `SELECT json_extract(payload, '$.mapped.event_id') AS id, relay_name AS relay, state, reason FROM event`,
    )
    .all();
  const stored = new Map(events.map((event) => [event.id, event]));
  if (stored.size !== events.length) broken.push("an event is stored twice");
  for (const id of acknowledged.keys())
    if (!stored.has(id)) broken.push(`${id} was acknowledged and is lost`);
  // A send that was cut off seven times ends dead, as the state table has it: what it did before stands, once.
  const cutOff = new Set(
    events.filter(({ state, reason }) => state === "dead" && reason === "interrupted").map(({ id }) => id),
  );
  for (const event of events)
    if (event.state !== "done" && !cutOff.has(event.id))
      broken.push(`${event.id} of ${event.relay} is ${event.state} (${event.reason})`);

  const steps = countBy(
    database,
    "SELECT json_extract(data, '$.order') || ' ' || json_extract(data, '$.step') AS key FROM record",
  );
  const expected = new Map<string, number>();
  for (const { id, relay } of events) {
    if (relay === "writes") for (const step of ["one", "two"]) expected.set(`${id} ${step}`, 1);
    if (relay !== "sends") continue;
    for (const step of ["before", "after"]) {
      const key = `${id} ${step}`;
      if (!cutOff.has(id) || steps.has(key)) expected.set(key, 1);
    }
  }
  broken.push(...differ("record", expected, steps));

  const given = events.filter((event) => event.relay === "gives").map((event) => event.id);
  const reasons = countBy(
    database,
    "SELECT reason AS key FROM credit WHERE source = 'relay' AND reason LIKE 'relay: event %'",
  );
  broken.push(...differ("credit line", new Map(given.map((id) => [`relay: event ${id}`, 1])), reasons));

  const payments = new Map(
    events
      .filter((event) => event.relay === "sales")
      .map((event) => [makeCrashEvent(Number(event.id.slice(1))).payment, 1]),
  );
  broken.push(
    ...differ(
      "purchase",
      payments,
      countBy(database, "SELECT ref AS key FROM purchase WHERE kind = 'purchase'"),
    ),
  );

  const balances = new Map<string, number>();
  const credit = (id: string, amount: number): void => {
    const { email } = makeCrashEvent(Number(id.slice(1)));
    balances.set(email, (balances.get(email) ?? 0) + amount);
  };
  for (const id of given) credit(id, 3);
  for (const payment of payments.keys()) credit(`e${Number(payment.slice(4)) * 8}`, 10);
  const sums = database
    .query<{ key: string; value: number }, []>(
      "SELECT person.email AS key, sum(credit.amount) AS value FROM credit JOIN person ON person.id = credit.person_id GROUP BY person.id",
    )
    .all();
  broken.push(...differ("balance", balances, new Map(sums.map(({ key, value }) => [key, value]))));
  const last = database
    .query<{ key: string; value: number }, []>(
      `SELECT person.email AS key, credit.balance AS value FROM credit JOIN person ON person.id = credit.person_id
       WHERE credit.seq = (SELECT max(seq) FROM credit AS later WHERE later.person_id = credit.person_id)`,
    )
    .all();
  broken.push(
    ...differ("last line's balance", balances, new Map(last.map(({ key, value }) => [key, value]))),
  );

  for (const { id, relay } of events) {
    if (relay === "sends" && !cutOff.has(id) && !delivered.has(id))
      broken.push(`the notice of ${id} never arrived`);
  }
  return broken;
}

function countBy(database: Database, sql: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of database.query<{ key: string }, []>(sql).all())
    counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

function differ(
  what: string,
  expected: ReadonlyMap<string, number>,
  found: ReadonlyMap<string, number>,
): string[] {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names].flatMap((name) => {
    const [wanted, is] = [expected.get(name) ?? 0, found.get(name) ?? 0];
    return wanted === is ? [] : [`${what} ${name}: ${is} instead of ${wanted}`];
  });
}
