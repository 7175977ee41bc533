/**
 * The apps of a cluster for failure tests, and what the cluster must leave in the database. That is computed from the ids that senders recorded, the
 * notices that the sink received, and the time of the only tick.
 */
import { callApi, makeTenants, saveReceiver, startNode, type Tenant } from "../kit/node.ts";
import { poll } from "../kit/patience.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import type { Sink } from "../kit/sink.ts";
import type { ClusterNode, Ground, Sender } from "./cluster.ts";

export const CLUSTER_RELAYS = ["writes", "sends", "gives"];
export const CLUSTER_APPS = ["app_a", "app_b", "app_c"];
/** The period of the schedule of each app. */
export const TICK_MS = 15 * 60_000;

const write = (step: string) => ({ type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}", step } });

/** Creates the apps. Each has one environment with a relay that writes, one that sends, one that gives credits, and a schedule. */
export async function seedCluster(databaseUrl: string): Promise<Tenant[]> {
  await using node = await startNode(databaseUrl);
  const map = { event_id: "id" };
  const tenants: Tenant[] = [];
  for (const app of CLUSTER_APPS) {
    for (const tenant of await makeTenants(node, app, ["development"])) {
      tenants.push(tenant);
      const fields = { order: { type: "text" }, step: { type: "text" } };
      await callApi(node, tenant, "POST", "/collections", { name: "orders", kind: "shared", fields });
      await saveReceiver(node, tenant, receiverDefinition({ name: "writes", map, actions: [write("one")] }));
      await saveReceiver(
        node,
        tenant,
        receiverDefinition({
          name: "sends",
          map,
          actions: [write("before"), { type: "call_url", url: "https://example.com/notice" }, write("after")],
        }),
      );
      const person = { ...map, person_email: "email" };
      await saveReceiver(node, tenant, receiverDefinition({ name: "gives", map: person, actions: [{ type: "grant_credits", amount: 3 }] }));
      const trigger = { kind: "schedule", every: "15m" };
      const tick = { type: "write_record", collection: "orders", data: { order: "tick", step: "{{tick.periodStart}}" } };
      await callApi(node, tenant, "POST", "/relays", { definition: { name: "ticks", trigger, actions: [tick] } });
    }
  }
  return tenants;
}

interface Left {
  senders: readonly Sender[];
  sink: Sink;
  tickMs: number;
}

/** Waits until each app's tick ran and every event ended. What was cut off more than once waits as after a failed attempt, and is retried now. */
export async function settleCluster(ground: Ground, { url }: ClusterNode, tenants: readonly Tenant[]): Promise<void> {
  const ticked = "SELECT 1 FROM record WHERE data::json ->> 'order' = 'tick'";
  await poll(
    async () => (await ground.rows(ticked)).length,
    (count) => count >= CLUSTER_APPS.length,
  );
  const retry = async (): Promise<number> => {
    for (const tenant of tenants)
      for (const relay of CLUSTER_RELAYS) await callApi({ service: { url } }, tenant, "POST", `/relays/${relay}/retry`, {});
    // An event that runs can still become one that was cut off, when its node finds that the crash undid its result.
    return (await ground.rows("SELECT 1 FROM event WHERE state = 'running' OR (state = 'queued' AND reason = 'interrupted')")).length;
  };
  await poll(retry, (count) => count === 0, 1_000);
  await ground.untilDone();
}

/** Returns a sentence for each difference; empty if nothing is lost, doubled, stuck or out of order, and each tick ran once. */
export async function compareCluster(ground: Ground, { senders, sink, tickMs }: Left): Promise<string[]> {
  const recorded = senders.flatMap((sender) => [...sender.recorded]);
  const ids = (relay: string) => recorded.filter(([name]) => name.endsWith(` ${relay}`)).flatMap(([, all]) => all);
  const rows = await ground.rows<{ app: string; order: string; step: string }>(
    `SELECT app_id AS app, data::json ->> 'order' AS "order", data::json ->> 'step' AS step
     FROM record JOIN environment ON environment.id = record.environment_id ORDER BY record.seq`,
  );
  const made = rows.map(({ app, order, step }) => (order === "tick" ? `${app} ${order} ${step}` : `${order} ${step}`));
  const there = new Set(made);
  const wanted = [...ids("writes").map((id) => `${id} one`), ...ids("sends").flatMap((id) => [`${id} before`, `${id} after`])];
  const notices = new Set(sink.notices.map(({ body }) => (JSON.parse(String(body)) as { id: string }).id));
  const count = async (relay: string) =>
    Number(
      (
        await ground.rows<{ events: bigint }>(
          "SELECT count(*) AS events FROM event JOIN relay_name ON relay_name.key = event.name_key WHERE relay_name.name = $1",
          relay,
        )
      )[0]?.events,
    );
  const [sent, given] = [await count("sends"), await count("gives")];
  const [credit] = await ground.rows<{ amount: bigint | null }>("SELECT sum(amount)::bigint AS amount FROM credit");
  const open = await ground.rows<{ state: string; reason: string | null }>("SELECT state, reason FROM event WHERE state <> 'done'");
  return [
    ...(made.length === there.size ? [] : [`${made.length - there.size} records are doubled`]),
    ...wanted.filter((one) => !there.has(one)).map((one) => `the record ${one} is lost`),
    ...[
      ...Map.groupBy(
        rows.filter(({ step }) => step === "one").map(({ order }) => order),
        (order) => order.replace(/-\d+$/, ""),
      ),
    ].flatMap(([name, orders]) => {
      const numbers = orders.map((order) => Number(order.split("-").at(-1)));
      return numbers.every((number, at) => number > (numbers[at - 1] ?? -1)) ? [] : [`${name} ran out of order`];
    }),
    ...CLUSTER_APPS.flatMap((app) => {
      const ticks = rows.filter((row) => row.app === app && row.order === "tick").map(({ step }) => step);
      return ticks.join() === new Date(tickMs).toISOString() ? [] : [`${app} ticked at ${ticks.join(" and ") || "no time"}`];
    }),
    ...(notices.size === sent ? [] : [`${sent} events sent ${notices.size} notices`]),
    ...(Number(credit?.amount) === 3 * given ? [] : [`${given} events gave ${credit?.amount} credits`]),
    ...(given >= ids("gives").length ? [] : [`${ids("gives").length - given} events that give credits are lost`]),
    ...open.map(({ state, reason }) => `an event is ${state} (${reason})`),
    ...recorded.filter(([, all]) => all.length === 0).map(([name]) => `${name} recorded nothing`),
  ];
}
