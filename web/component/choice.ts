/** A filter with few values, kept in the address. */
import type { Page, RelayItem } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";

export function Choice({
  name,
  label,
  none,
  query,
  options,
  without = [],
}: {
  /** In the address. */
  name: string;
  label: string;
  /** What no choice is called. */
  none: string;
  query: URLSearchParams;
  options: readonly (readonly [value: string, words: string])[];
  /** What stands in the address instead of it, and leaves it with a choice. */
  without?: readonly string[];
}): View {
  const choose = (chosen: string): void =>
    setQuery({ ...Object.fromEntries(without.map((other) => [other, ""])), [name]: chosen });
  const value = query.get(name) ?? "";
  return html`<select class=${value === "" ? "" : "chosen"} aria-label=${label} value=${value} onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
    <option value="" selected=${value === ""}>${none}</option>
    ${options.map(
      ([option, words]) => html`<option key=${option} value=${option} selected=${option === value}>
      ${words}</option>`,
    )}
  </select>`;
}

/** One relay of the environment, by `relay` in the address; one that is there no more can still be chosen by address. */
export function RelayChoice({ place, query }: { place: Place; query: URLSearchParams }): View {
  const relays = useLoad<Page<RelayItem>>(`${apiPath(place, "relays")}?limit=200`);
  const names = (relays.data?.items ?? []).map(({ name }) => name).sort();
  const chosen = query.get("relay") ?? "";
  const listed = chosen === "" || names.includes(chosen) ? names : [chosen, ...names];
  return html`<${Choice} name="relay" label="Relay" none="Every relay" query=${query} options=${listed.map((name) => [name, name])} />`;
}
