/**
 * Returns the place that the dashboard opens: the one with the most open attention items, production first. If there are no items, it is the last one
 * if it still exists, then one with relays, production first, then the first environment.
 */
import type { EnvironmentSummary } from "../../src/insight/overview/environment-list.ts";
import type { Session } from "../account/session.ts";
import { type Place, recallPlace } from "../base/place.ts";

export function firstPlace({ apps }: Session, places: readonly EnvironmentSummary[] = []): Place | null {
  const [troubled] = places
    .filter(({ needs }) => needs > 0)
    .toSorted((one, other) => weigh(other) - weigh(one) || other.needs - one.needs);
  if (troubled !== undefined) return { app: troubled.app, environment: troubled.environment };
  const last = recallPlace();
  const lastApp = apps.find(({ id }) => id === last?.app);
  if (last !== null && lastApp?.environments.includes(last.environment)) return last;
  const [used] = places
    .filter(({ relays }) => relays > 0)
    .toSorted((one, other) => weigh(other) - weigh(one));
  if (used !== undefined) return { app: used.app, environment: used.environment };
  for (const { id, environments } of apps) {
    const environment = environments.includes("development") ? "development" : environments[0];
    if (environment !== undefined) return { app: id, environment };
  }
  return null;
}

function weigh({ environment }: EnvironmentSummary): number {
  return environment === "production" ? 1 : 0;
}
