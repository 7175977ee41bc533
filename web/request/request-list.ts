/**
 * List of the requests to an environment's receivers, newest first, to answer "the provider says that it sent it". A
 * request without an event shows its cause. The others link to their event.
 */
import type { RequestCountsView } from "../../src/engine/receiver/request.ts";
import type { EventItem, Page, RecentRequest, UnknownRequest } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { type List, useList } from "../base/use-list.ts";
import { useLoad } from "../base/use-load.ts";
import { Choice, RelayChoice } from "../component/choice.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { LiveMark } from "../component/live-mark.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { formatRefusal } from "./rejection-text.ts";
import { RequestEvent, RequestRow, UnknownRequestNotice } from "./request-row.ts";
import { isLike, type LikeCalls } from "./similar-requests.ts";

const REFRESH_MS = 2_000;
const COUNTS_MS = 10_000;
const NAMES = ["relay", "outcome", "code"] as const;
const OUTCOMES = [
  ["refused", "Rejected"],
  ["ignored", "Ignored"],
  ["duplicate", "Duplicates"],
  ["answered", "Handshakes"],
  ["accepted", "Accepted"],
] as const;

type Line = { at: string } & ({ calls: LikeCalls } | { event: EventItem });

export function RequestListPage({ place, query }: PageProps): View {
  const relay = query.get("relay") ?? "";
  const outcome = query.get("outcome") ?? "";
  const code = query.get("code") ?? "";
  const refused = outcome === "accepted" ? "" : outcome;
  const calls = useList<RecentRequest>(
    apiPath(place, "calls") + writeQuery({ relay, outcome: refused, code }),
    REFRESH_MS,
  );
  const accepted = useList<EventItem>(
    apiPath(place, "events") + writeQuery({ trigger: "receiver", relay }),
    REFRESH_MS,
  );
  const unknown = useLoad<Page<UnknownRequest>>(`${apiPath(place, "unknown-calls")}?limit=200`, REFRESH_MS);
  const lists: List<unknown>[] =
    code !== "" ? [calls] : outcome === "" ? [calls, accepted] : [outcome === "accepted" ? accepted : calls];
  const isFiltered = NAMES.some((name) => (query.get(name) ?? "") !== "");
  const error = lists.find((list) => list.error !== null)?.error ?? null;
  const isKnown = lists.every(({ items }) => items !== undefined);
  const lines = merge(lists.includes(calls) ? calls : null, lists.includes(accepted) ? accepted : null);
  const retry = (): void => {
    for (const list of lists) list.reload();
  };
  const further = lists.find(({ next }) => next !== null);
  return html`<${PageHead} title="Requests" aside=${isKnown && html`<${LiveMark} />`}><${DocsLink} to=${DOCS.sent}>A request is missing?<//><//>
    <div class="filters" role="search" aria-label="Filter requests">
      <${RelayChoice} place=${place} query=${query} />
      <${Choice} name="outcome" label="Outcome" none="Every outcome" query=${query} options=${OUTCOMES} without=${["code"]} />
      ${outcome !== "accepted" && html`<${CauseChoice} place=${place} query=${query} />`}
      ${isFiltered && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}
    </div>
    ${
      outcome === "" &&
      code === "" &&
      (unknown.data?.items ?? [])
        .filter(({ nearest }) => relay === "" || nearest === relay)
        .map((call) => html`<${UnknownRequestNotice} key=${call.id} place=${place} call=${call} />`)
    }
    ${error !== null && isKnown && html`<${StaleNotice} error=${error} />`}
    ${
      !isKnown
        ? html`<${LoadingState} error=${error} rows=${8} onRetry=${retry} />`
        : lines.length === 0 && further === undefined
          ? html`<${None} place=${place} isFiltered=${isFiltered} />`
          : html`<ul class="calls card-list">${lines.map((line) => html`<${LineRow} key=${"calls" in line ? line.calls.at(-1)?.id : line.event.id} place=${place} line=${line} />`)}</ul>
            <${OlderButton} list=${further ?? lists[0]} none="No more requests. Relay keeps the last 1,000 without an event, and events for 30 days." />`
    }`;
}

/** Filter by the cause of a rejection, with the number of requests for each. */
function CauseChoice({ place, query }: { place: Place; query: URLSearchParams }): View {
  const relay = query.get("relay") ?? "";
  const path = apiPath(place, "calls", "counts") + writeQuery({ relay });
  const { codes = [] } = useLoad<{ counts: RequestCountsView }>(path, COUNTS_MS).data?.counts ?? {};
  const options: [code: string, words: string][] = codes.map(({ code, calls }) => [
    code,
    `${formatRefusal(code)} · ${formatNumber(calls)}`,
  ]);
  const chosen = query.get("code") ?? "";
  if (chosen !== "" && !codes.some(({ code }) => code === chosen))
    options.push([chosen, formatRefusal(chosen)]);
  if (options.length === 0) return null;
  return html`<${Choice} name="code" label="Cause" none="Every cause" query=${query} options=${options} without=${["outcome"]} />`;
}

function showAll(): void {
  setQuery(Object.fromEntries(NAMES.map((name) => [name, ""])));
}

/** Merges both lists by time, as far back as both are loaded. Adjacent requests with the same cause share a line. */
function merge(calls: List<RecentRequest> | null, accepted: List<EventItem> | null): Line[] {
  const lines: Line[] = [
    ...(calls?.items ?? []).map((call): Line => ({ at: call.at, calls: [call] })),
    ...(accepted?.items ?? []).map((event) => ({ at: event.createdAt, event })),
  ];
  const ends = [calls, accepted].flatMap((list) => {
    const last = list?.items?.at(-1);
    if (list === null || list.next === null || last === undefined) return [];
    return ["at" in last ? last.at : last.createdAt];
  });
  const from = ends.sort().at(-1) ?? "";
  const shown = lines
    .filter(({ at }) => at >= from)
    .sort((left, right) => (left.at < right.at ? 1 : left.at > right.at ? -1 : 0));
  const rows: Line[] = [];
  for (const line of shown) {
    const last = rows.at(-1);
    const goesOn =
      last !== undefined && "calls" in last && "calls" in line && isLike(last.calls[0], line.calls[0]);
    if (goesOn) last.calls.push(...line.calls);
    else rows.push(line);
  }
  return rows;
}

function LineRow({ place, line }: { place: Place; line: Line }): View {
  if ("calls" in line) return html`<${RequestRow} place=${place} calls=${line.calls} withRelay />`;
  const { id, relay, createdAt, eventType } = line.event;
  return html`<li>
    <p class="call-head"><${StateMark} state="done" word="Accepted" />
      <a data-row href=${pagePath(place, "events", id)} aria-label="Event ${id} of ${relay.name}">${relay.name}</a>
      <${RequestEvent} event=${line.event} type=${eventType} />
      <a class="call-try" href=${pagePath(place, "relays", relay.name) + writeQuery({ tab: "test", event: id })} aria-label="Test it with ${relay.name}">Test it</a>
      <span class="call-time"><${Ago} at=${createdAt} /></span></p>
  </li>`;
}

function None({ place, isFiltered }: { place: Place; isFiltered: boolean }): View {
  if (isFiltered) {
    return html`<${EmptyState} icon="search" title="No request matches"><button type="button" onClick=${showAll}>Show all</button><//>`;
  }
  return html`<${EmptyState} icon="calls" title="No requests yet">
    <p>Each request to a receiver URL appears here at once: accepted, ignored, a duplicate, or rejected with its cause.</p>
    <a class="button" href=${pagePath(place, "relays")}>Open relays</a><//>`;
}
