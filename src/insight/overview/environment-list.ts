/** Lists the environments with the number of their attention items, so that an owner of several sees where to look first. */
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { oneOf, timeOrNull } from "../../base/schema.ts";
import { listApps } from "../../platform/account/app.ts";
import { ENVIRONMENT_NAMES, type Environment, listEnvironments } from "../../platform/account/environment.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import { listAttention } from "./attention.ts";

export const environmentSummaryView = Type.Object({
  app: Type.String(),
  environment: oneOf(ENVIRONMENT_NAMES),
  /** Attention items of the environment; those of the whole server do not count. */
  needs: Type.Integer(),
  /** The time when the oldest of them began. */
  since: timeOrNull,
  relays: Type.Integer(),
});
export type EnvironmentSummary = Static<typeof environmentSummaryView>;

/** Summarizes the environments of all apps that `sees` accepts. */
export async function listEnvironmentSummaries(
  store: Store,
  clock: Clock,
  sees: (environment: Environment) => boolean,
): Promise<EnvironmentSummary[]> {
  const [apps, environments] = await store.read(
    async (tx) => [await listApps(tx), (await listEnvironments(tx, null)).filter(sees)] as const,
  );
  const summaries: EnvironmentSummary[] = [];
  for (const { id: app } of apps) {
    for (const environment of environments.filter(({ appId }) => appId === app)) {
      const sql = "SELECT count(*) AS count FROM relay WHERE environment_id = ?1";
      const relays = (await store.read((tx) => tx.get<{ count: number }>(sql, environment.id)))?.count ?? 0;
      const { items: all } = await listAttention(store, { environment, clock }, false);
      const items = all.filter(({ target }) => target !== "server");
      const since = items.map((item) => item.since).sort()[0] ?? null;
      summaries.push({ app, environment: environment.name, needs: items.length, since, relays });
      await yieldToEventLoop();
    }
  }
  return summaries;
}
