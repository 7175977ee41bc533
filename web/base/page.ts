/** Properties of every page. */
import type { Place } from "./place.ts";

export interface PageProps {
  place: Place;
  /** Parts of the address that its pattern names. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
}
