/** Where the dashboard opens: the place of last time if it still exists, else the first environment there is. */
import type { Session } from "../account/session.ts";
import { type Place, recallPlace } from "../ground/place.ts";

export function firstPlace({ apps }: Session): Place | null {
  const last = recallPlace();
  const lastApp = apps.find(({ id }) => id === last?.app);
  if (last !== null && lastApp?.environments.includes(last.environment)) return last;
  for (const { id, environments } of apps) {
    const environment = environments.includes("development") ? "development" : environments[0];
    if (environment !== undefined) return { app: id, environment };
  }
  return null;
}
