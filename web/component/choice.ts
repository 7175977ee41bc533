/** Filter with few values, stored in the address. */
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
  /** Name of the query field. */
  name: string;
  label: string;
  /** Label of the empty choice. */
  none: string;
  query: URLSearchParams;
  options: readonly (readonly [value: string, words: string])[];
  /** Query fields that a choice removes, because they are alternatives. */
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

/** Choice of a relay of the environment, stored as `relay` in the address. A deleted relay stays selectable if the address names it. */
export function RelayChoice({ place, query }: { place: Place; query: URLSearchParams }): View {
  const relays = useLoad<Page<RelayItem>>(`${apiPath(place, "relays")}?limit=200`);
  const names = (relays.data?.items ?? []).map(({ name }) => name).sort();
  const chosen = query.get("relay") ?? "";
  const listed = chosen === "" || names.includes(chosen) ? names : [chosen, ...names];
  return html`<${Choice} name="relay" label="Relay" none="Every relay" query=${query} options=${listed.map((name) => [name, name])} />`;
}
