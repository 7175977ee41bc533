/**
 * List of the environment's people, newest first, with their current access. A search uses the index of names first,
 * then searches inside email addresses.
 */
import type { PersonItem } from "../../src/shop/people/person-list.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { type List, useList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { SafeText } from "../component/safe-text.ts";
import { SearchBox } from "../component/search-box.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { InviteButton } from "./invite.ts";
import { PersonNotFound } from "./person-not-found.ts";

const REFRESH_MS = 10_000;
const STATUSES = [
  ["invited", "Invited"],
  ["active", "Active"],
  ["suspended", "Suspended"],
] as const;
const HOLDS = [
  ["true", "Has access"],
  ["false", "No access"],
] as const;

export function PersonListPage({ place, query }: PageProps): View {
  const text = (query.get("q") ?? "").trim();
  const chosen = { status: query.get("status"), access: query.get("access") };
  const path = apiPath(place, "persons");
  const found = useList<PersonItem>(path + writeQuery({ find: text || "-" }));
  const isFound = text !== "" && !hasChoice(query) && found.items?.length !== 0;
  const all = useList<PersonItem>(path + writeQuery({ q: text, ...chosen }), REFRESH_MS);
  const list = isFound ? found : all;
  return html`<${PageHead} title="People"><${InviteButton} place=${place} /><//>
    <div class="filters" role="search" aria-label="Filter people">
      <${SearchBox} value=${text} label="Address, id, store token or customer ID" onValue=${(q: string) => setQuery({ q })} />
      <${Choice} name="access" label="Access" none="Any access" query=${query} options=${HOLDS} />
      <${Choice} name="status" label="Status" none="Every status" query=${query} options=${STATUSES} />
      ${(text !== "" || hasChoice(query)) && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}
    </div>
    ${list.error !== null && list.items !== undefined && html`<${StaleNotice} error=${list.error} />`}
    ${
      list.items === undefined
        ? html`<${LoadingState} error=${list.error} rows=${10} onRetry=${list.reload} />`
        : list.items.length === 0
          ? html`<${None} place=${place} list=${list} text=${text} isFiltered=${hasChoice(query)} />`
          : html`<${Table} label="People" columns=${columnsOf(place)} items=${list.items} />
            <${OlderButton} list=${list} none=${isFound ? "No more people match." : "No more entries."} />`
    }`;
}

function hasChoice(query: URLSearchParams): boolean {
  return (query.get("status") ?? "") !== "" || (query.get("access") ?? "") !== "";
}

function showAll(): void {
  setQuery({ q: "", status: "", access: "" });
}

function columnsOf(place: Place): Column<PersonItem>[] {
  return [
    {
      name: "person",
      title: "Person",
      priority: 1,
      cell: ({ id, email }) =>
        html`<a class="clip" data-row href=${pagePath(place, "people", id)}><${SafeText} text=${email} limit=${100} /></a>`,
    },
    {
      name: "access",
      title: "Access",
      priority: 2,
      size: "address",
      cell: (person) => html`<${Access} person=${person} />`,
    },
    {
      name: "credits",
      title: "Credits",
      priority: 3,
      size: "number",
      cell: ({ credits }) =>
        credits === 0 ? html`<span class="quiet">0</span>` : html`<b>${formatNumber(credits)}</b>`,
    },
    {
      name: "status",
      title: "Status",
      priority: 2,
      size: "short",
      cell: ({ status }) => html`<${PersonState} status=${status} />`,
    },
    timeColumn("time", "Since", 2, ({ createdAt }) => createdAt),
  ];
}

/** Keys that a row shows. Its title shows the others. */
const SHOWN_KEYS = 3;

function Access({ person: { access, holds } }: { person: PersonItem }): View {
  if (!access.granted) return html`<span class="quiet">None</span>`;
  const keys = holds.entitlements
    .filter((key) => key !== holds.plan)
    .map((key) => key.replace(/^access:/, ""));
  const names = holds.plan === null ? keys : [holds.plan, ...keys];
  const more = names.length + holds.count - holds.entitlements.length - SHOWN_KEYS;
  return html`<div class="access-now"><span><${StateMark} state="done" word="Has access" />${access.until !== null && html` <span class="quiet">ends <${Ago} at=${access.until} /></span>`}</span>
    <span class="quiet" title=${names.join(", ")}>${names.slice(0, SHOWN_KEYS).join(", ")}${more > 0 && ` +${more}`}</span></div>`;
}

const STATES = {
  invited: ["invited", "Invited"],
  active: ["active", "Active"],
  suspended: ["paused", "Suspended"],
} as const;

export function PersonState({ status }: { status: PersonItem["status"] }): View {
  const [state, word] = STATES[status];
  return html`<${StateMark} state=${state} word=${word} />`;
}

/** A page of the API scans a bounded number of people, so an empty page does not mean that nothing matches. */
function None({
  place,
  list,
  text,
  isFiltered,
}: {
  place: Place;
  list: List<PersonItem>;
  text: string;
  isFiltered: boolean;
}): View {
  if (list.next !== null) {
    return html`<${EmptyState} icon="search" title="No match among the newest people"><p>Relay has not searched the older ones yet.</p>
      <button type="button" class="primary" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
        ${list.isLoadingOlder ? "Searching…" : "Search older ones"}</button><//>`;
  }
  if (text !== "" && !isFiltered) return html`<${PersonNotFound} place=${place} name=${text} />`;
  if (isFiltered) {
    return html`<${EmptyState} icon="search" title="No person matches"><p>Change or clear the filter.</p>
      <button type="button" onClick=${showAll}>Show all</button><//>`;
  }
  return html`<${EmptyState} icon="person" title="No people yet">
    <p>People are your customers. A person appears when an event’s <code>person_email</code> first names an address, when a customer signs in to your app, or when you invite one.</p><//>`;
}
