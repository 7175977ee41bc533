/** The environments that there are, with how much of each needs somebody: where an owner who has several looks first. */
import { type Static, Type } from "typebox";
import { oneOf, timeOrNull } from "../../base/schema.ts";
import { listApps } from "../../platform/account/app.ts";
import { ENVIRONMENT_NAMES, listEnvironments } from "../../platform/account/environment.ts";
import { turnLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import { type AttentionContext, findAttention } from "./attention.ts";

export const environmentSummaryView = Type.Object({
  app: Type.String(),
  environment: oneOf(ENVIRONMENT_NAMES),
  /** How many things of its own need somebody; what is the whole server's is not one. */
  needs: Type.Integer(),
  /** Since when the longest of them does. */
  since: timeOrNull,
  relays: Type.Integer(),
});
export type EnvironmentSummary = Static<typeof environmentSummaryView>;

/** Every environment of every app, and how much of each needs somebody. */
export async function listEnvironmentSummaries(
  store: Store,
  context: Omit<AttentionContext, "environment">,
): Promise<EnvironmentSummary[]> {
  const [apps, environments] = await store.read(
    async (tx) => [await listApps(tx), await listEnvironments(tx, null)] as const,
  );
  const places: EnvironmentSummary[] = [];
  for (const { id: app } of apps) {
    for (const environment of environments.filter(({ appId }) => appId === app)) {
      const sql = "SELECT count(*) AS count FROM relay WHERE environment_id = ?1";
      const relays = (await store.read((tx) => tx.get<{ count: number }>(sql, environment.id)))?.count ?? 0;
      const { needs: all } = await findAttention(store, { ...context, environment }, relays, false);
      const needs = all.filter(({ target }) => target !== "server");
      const since = needs.map((need) => need.since).sort()[0] ?? null;
      places.push({ app, environment: environment.name, needs: needs.length, since, relays });
      await turnLoop();
    }
  }
  return places;
}
