/** How many problems stand in an environment, for the navigation. */
import type { ProblemView } from "../../src/watch/problem.ts";
import type { Page } from "../ground/answer.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";

const REFRESH_MS = 15_000;

export function useProblems(place: Place) {
  return useLoad<Page<ProblemView>>(apiPath(place, "problems"), REFRESH_MS);
}

export function useAttention(place: Place): number {
  return useProblems(place).data?.items.length ?? 0;
}
