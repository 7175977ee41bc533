/** What every page is handed. Types alone. */
import type { Place } from "./place.ts";

export interface PageProps {
  place: Place;
  /** The parts of the address that its pattern names. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
}
