/** Number of open attention items of an environment, for the navigation. Home and the Alerts page show the same items. */
import type { EnvironmentSummary } from "../../src/insight/overview/environment-list.ts";
import type { Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";

const REFRESH_MS = 15_000;

export function useAttention({ app, environment }: Place): number {
  const { data } = useLoad<{ places: EnvironmentSummary[] }>("/api/overview", REFRESH_MS);
  return data?.places.find((one) => one.app === app && one.environment === environment)?.needs ?? 0;
}
