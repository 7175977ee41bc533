/**
 * Audit log page: who changed what and when, and the earlier value, for this environment or the server. The address holds
 * the filters and the open row.
 */
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { type List, useList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { SearchBox } from "../component/search-box.ts";
import { TabLinks } from "../component/tab-links.ts";
import { type AuditItem, AuditRow } from "./audit-row.ts";
import { formatAction, formatNamed } from "./words.ts";

const REFRESH_MS = 10_000;
const NAMES = ["target", "actor", "action", "kind"] as const;
const SERVER = "server";
const SCOPES = [
  ["", "This environment"],
  [SERVER, "Whole server"],
] as const;
const KINDS = [["run", "Runs of relays"]] as const;

export function AuditPage({ place, query }: PageProps): View {
  const chosen = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const scope = query.get("of") === SERVER ? SERVER : "";
  const isServer = scope === SERVER;
  const { target, actor, action } = chosen;
  const path = isServer ? "/api/audit" : apiPath(place, "audit");
  const kind = isServer ? "" : chosen.kind === "run" ? "run" : "change";
  const list = useList<AuditItem>(path + writeQuery({ target, actor, action, kind }), REFRESH_MS);
  const isFiltered = NAMES.some((name) => chosen[name] !== "");
  const isRuns = kind === "run";
  return html`<${PageHead} title="Audit log" />
    <${TabLinks} label="Scope" chosen=${scope} tabs=${SCOPES.map(([name, title]) => ({ name, title, href: pagePath(place, "audit-log") + writeQuery({ of: name }) }))} />
    ${isServer && html`<p class="tab-lead">Changes outside of environments: owners and their sessions, apps, command-line logins and backups.</p>`}
    <div class="filters" role="search" aria-label="Filter the audit log">
      <${SearchBox} value=${chosen.target ?? ""} label="Target, for example ${isServer ? "owner:ann@example.com" : "relay:orders"}" onValue=${(target: string) => setQuery({ target: target.trim() })} />
      ${
        !isRuns &&
        html`<${Choice} name="actor" label="Actor" none="All actors" query=${query} options=${namesOf(list, "actor", chosen.actor, (actor) => formatNamed(actor, list.items?.find((item) => item.actor === actor)?.actorName))} />
      <${Choice} name="action" label="Action" none="All actions" query=${query} options=${namesOf(list, "action", chosen.action, formatAction)} />`
      }
      ${!isServer && html`<${Choice} name="kind" label="Kind" none="Changes" query=${query} options=${KINDS} />`}
      ${isFiltered && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}
    </div>
    ${list.error !== null && list.items !== undefined && html`<${StaleNotice} error=${list.error} />`}
    ${
      list.items === undefined
        ? html`<${LoadingState} error=${list.error} rows=${10} onRetry=${list.reload} />`
        : list.items.length === 0
          ? html`<${None} list=${list} isFiltered=${isFiltered} />`
          : html`<${Rows} place=${place} scope=${scope} items=${list.items} open=${query.get("open")} />
            <${OlderButton} list=${list} none="No older entries." />`
    }`;
}

function Rows({
  place,
  scope,
  items,
  open,
}: {
  place: Place;
  scope: string;
  items: readonly AuditItem[];
  open: string | null;
}): View {
  return html`<ol class="audit" aria-label="Audit log">${items.map(
    (item) =>
      html`<${AuditRow} key=${item.id} place=${place} scope=${scope} item=${item} isOpen=${item.id === open} />`,
  )}</ol>`;
}

/** Returns the options of a filter: the names in the shown rows and the chosen one. */
function namesOf(
  list: List<AuditItem>,
  field: "actor" | "action",
  chosen: string | undefined,
  say: (words: string) => string,
): (readonly [string, string])[] {
  const names = new Set((list.items ?? []).map((item) => item[field]));
  if (chosen !== undefined && chosen !== "") names.add(chosen);
  return [...names].sort().map((name) => [name, say(name)] as const);
}

function showAll(): void {
  setQuery(Object.fromEntries(NAMES.map((name) => [name, ""])));
}

/** A page of the API scans a bounded number of rows, so an empty page does not mean that nothing matches. */
function None({ list, isFiltered }: { list: List<AuditItem>; isFiltered: boolean }): View {
  if (list.next !== null) {
    return html`<${EmptyState} icon="search" title="No match among the newest"><p>Relay has not searched the older ones yet.</p>
      <button type="button" class="primary" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
        ${list.isLoadingOlder ? "Searching…" : "Search older ones"}</button><//>`;
  }
  if (!isFiltered) {
    return html`<${EmptyState} icon="audit" title="No changes yet">
      <p>Each change by an owner, a key or a command appears here with the earlier value.</p><//>`;
  }
  return html`<${EmptyState} icon="search" title="No entry matches"><p>Write a target as in the list, for example <code>relay:orders</code> or <code>person:per_…</code>.</p>
    <button type="button" onClick=${showAll}>Show all</button><//>`;
}
