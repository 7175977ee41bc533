/** List of the environment's relays. */
import { WaitingApprovals } from "../approval/waiting-approvals.ts";
import type { RelayItem } from "../base/answer.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { formatTimesIn, useNow } from "../base/time-words.ts";
import { useCompleteList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { SearchBox } from "../component/search-box.ts";
import { Ago } from "../component/time.ts";
import { RelayBar, totalOf } from "./relay-bar.ts";
import { compareHealth, HEALTH_DISPLAY, HealthMark } from "./relay-health.ts";
import { RelayOrigin } from "./relay-origin.ts";

const REFRESH_MS = 5_000;
const SORTS = [
  ["traffic", "Traffic first"],
  ["name", "By name"],
  ["newest", "Newest first"],
] as const;

export function RelayListPage({ place, query }: PageProps): View {
  const path = `${apiPath(place, "relays")}?limit=200`;
  const list = useCompleteList<RelayItem>(path, REFRESH_MS);
  const { items, error, reload } = list;
  const now = useNow(60_000);
  const wanted = (query.get("q") ?? "").toLowerCase();
  const state = query.get("state") ?? "";
  const all = items ?? [];
  const shown = sortRelays(all, query.get("sort") ?? "")
    .filter((relay) => state === "" || hasState(relay, state))
    .filter((relay) => `${relay.name} ${relay.triggerInWords}`.toLowerCase().includes(wanted));
  const isFiltered = wanted !== "" || state !== "";
  const most = Math.max(0, ...all.map(({ last24h }) => totalOf(last24h)));
  return html`<${PageHead} title="Relays" aside=${
    items !== undefined &&
    all.length > 0 &&
    html`<span class="quiet">
    ${isFiltered && list.next === null && `${formatNumber(shown.length)} of `}${formatCount(all.length, "relay")}${list.next !== null && " and more"}</span>`
  }>
      ${place.environment === "development" && all.length > 0 && html`<a class="button" data-needs="request_changes" href=${pagePath(place, "relays", "to", "production")}>Promote to production…</a>`}
      <a class="button primary" data-needs="edit_definitions" href=${pagePath(place, "relays", "new")}><${Icon} name="plus" size=${14} />New relay</a>
    <//>
    ${
      all.length > 0 &&
      html`<div class="filters" role="search" aria-label="Filter relays">
        <${SearchBox} value=${query.get("q") ?? ""} label="Search relays" onValue=${(q: string) => setQuery({ q })} />
        <${Choice} name="state" label="State" none="Every state" query=${query} options=${statesOf(all, state)} />
        <${Choice} name="sort" label="Order" none="Trouble first" query=${query} options=${SORTS} />
        ${isFiltered && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}
      </div>`
    }
    ${place.environment === "production" && html`<${WaitingApprovals} place=${place} />`}
    ${error !== null && items !== undefined && html`<${StaleNotice} error=${error} />`}
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} onRetry=${reload} />`
        : all.length === 0
          ? html`<${FirstRelay} to=${pagePath(place, "relays", "new")} />`
          : shown.length === 0 && list.next === null
            ? html`<${EmptyState} icon="search" title="No relay matches">
              <button type="button" onClick=${showAll}>Show all</button><//>`
            : html`<table class="list relays">
              <thead><tr><th scope="col">Relay</th><th scope="col">Runs</th><th scope="col">Health</th>
                <th scope="col">Last 24 hours</th><th scope="col">Last event</th></tr></thead>
              <tbody>${shown.map(
                (relay) => html`<tr key=${relay.id}>
                  <td class="cell-main"><a data-row href=${pagePath(place, "relays", relay.name)}>${relay.name}</a>
                    <${RelayOrigin} origin=${relay.origin} /></td>
                  <td class="cell-words"><span class="clip" title=${relay.triggerInWords}>${relay.triggerInWords}</span>
                    <span class="quiet">${formatCount(relay.actions, "action")}</span></td>
                  <td class="cell-health"><span class="clip" title=${formatTimesIn(relay.health.message, now)}><${HealthMark} health=${relay.health} /></span></td>
                  <td><${RelayBar} counts=${relay.last24h} most=${most} /></td>
                  <td class="cell-time"><${Ago} at=${relay.lastEventAt} /></td>
                </tr>`,
              )}</tbody>
            </table>${list.next !== null && html`<${OlderButton} list=${list} none="" />`}`
    }`;
}

/** Sorts the relays, which arrive newest first. The order by trouble compares the traffic of relays with the same state. */
function sortRelays(relays: readonly RelayItem[], sort: string): RelayItem[] {
  if (sort === "newest") return [...relays];
  const byName = relays.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  if (sort === "name") return byName;
  const byTraffic = byName.toSorted((left, right) => totalOf(right.last24h) - totalOf(left.last24h));
  if (sort === "traffic") return byTraffic;
  return byTraffic.toSorted((left, right) => compareHealth(left.health, right.health));
}

/** A paused relay in trouble has the state of its trouble, and also the state `paused`. */
function hasState(relay: RelayItem, state: string): boolean {
  return relay.health.state === state || relay.state === state;
}

/** Lists the states that a relay has, and the chosen one, each with its number of relays. */
function statesOf(relays: readonly RelayItem[], chosen: string): [state: string, words: string][] {
  return Object.entries(HEALTH_DISPLAY).flatMap(([state, { name }]) => {
    const count = relays.filter((relay) => hasState(relay, state)).length;
    return count === 0 && state !== chosen ? [] : [[state, `${name} · ${formatNumber(count)}`]];
  });
}

function showAll(): void {
  setQuery({ q: "", state: "" });
}

function FirstRelay({ to }: { to: string }): View {
  return html`<${EmptyState} icon="relays" title="No relays yet">
    <p>A relay is a rule: when something happens — a provider’s signed webhook, a time of day, a changed record — run up to ten actions, each exactly once.</p>
    <a class="button primary" data-needs="edit_definitions" href=${to}><${Icon} name="plus" size=${14} />Start from an example</a>
  <//>`;
}
