/** Loads the number of open attention items of every environment. */
import type { EnvironmentSummary } from "../../src/insight/overview/environment-list.ts";
import { useLoad } from "../base/use-load.ts";

const REFRESH_MS = 15_000;

export function usePlaces(): { places: readonly EnvironmentSummary[] | undefined; error: string | null } {
  const { data, error } = useLoad<{ places: EnvironmentSummary[] }>("/api/overview", REFRESH_MS);
  return { places: data?.places, error };
}
