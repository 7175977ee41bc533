/** The audit: who changed what, when, and what it was before. Filters and the opened row stand in the address. */
import type { AuditView } from "../../src/watch/audit.ts";
import { writeQuery } from "../ground/api.ts";
import type { Json } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { setQuery } from "../ground/route.ts";
import { type List, useList } from "../ground/use-list.ts";
import { Choice } from "../part/choice.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { SearchBox } from "../part/search-box.ts";
import { AuditRow } from "./audit-row.ts";
import { sayAction, sayNamed } from "./words.ts";

const REFRESH_MS = 10_000;
const NAMES = ["target", "actor", "action", "kind"] as const;
const KINDS = [["run", "Runs of relays"]] as const;

/** As the dashboard reads it: with every number as it was written. */
export type AuditItem = Omit<AuditView, "before" | "after"> & { before: Json; after: Json };

export function AuditPage({ place, query }: PageProps): View {
  const chosen = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const filter = { ...chosen, kind: chosen.kind === "run" ? "run" : "change" };
  const list = useList<AuditItem>(apiPath(place, "audit") + writeQuery(filter), REFRESH_MS);
  const isFiltered = NAMES.some((name) => chosen[name] !== "");
  const isRuns = chosen.kind === "run";
  return html`<${PageHead} title="Audit" />
    <div class="filters" role="search" aria-label="Filter the audit">
      <${SearchBox} value=${chosen.target ?? ""} label="A thing, such as relay:orders" onValue=${(target: string) => setQuery({ target: target.trim() })} />
      ${
        !isRuns &&
        html`<${Choice} name="actor" label="Who" none="Everybody" query=${query} options=${namesOf(list, "actor", chosen.actor, sayNamed)} />
      <${Choice} name="action" label="What was done" none="Everything" query=${query} options=${namesOf(list, "action", chosen.action, sayAction)} />`
      }
      <${Choice} name="kind" label="Kind" none="Changes" query=${query} options=${KINDS} />
      ${isFiltered && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}
    </div>
    ${list.error !== null && list.items !== undefined && html`<${Notice} kind="warn">${list.error} What you see is from before.<//>`}
    ${
      list.items === undefined
        ? list.error === null
          ? html`<${Skeleton} rows=${10} />`
          : html`<${ErrorState} error=${list.error} onRetry=${list.reload} />`
        : list.items.length === 0
          ? html`<${None} list=${list} isFiltered=${isFiltered} />`
          : html`<${Rows} place=${place} items=${list.items} open=${query.get("open")} />
            <${OlderButton} list=${list} none="This is where it begins." />`
    }`;
}

function Rows({
  place,
  items,
  open,
}: {
  place: Place;
  items: readonly AuditItem[];
  open: string | null;
}): View {
  return html`<ol class="audit" aria-label="Audit">${items.map(
    (item) => html`<${AuditRow} key=${item.id} place=${place} item=${item} isOpen=${item.id === open} />`,
  )}</ol>`;
}

/** What is chosen, and what is shown to be chosen from. */
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

/** A page looks at a bounded number of rows, so that none found may mean none yet. */
function None({ list, isFiltered }: { list: List<AuditItem>; isFiltered: boolean }): View {
  if (list.next !== null) {
    return html`<${EmptyState} icon="search" title="None among the newest"><p>Older ones were not looked at yet.</p>
      <button type="button" class="primary" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
        ${list.isLoadingOlder ? "Looking…" : "Look further back"}</button><//>`;
  }
  if (!isFiltered) {
    return html`<${EmptyState} icon="audit" title="Nothing was changed yet">
      <p>Each change that an owner, a key or a command makes here is kept, with what it was before.</p><//>`;
  }
  return html`<${EmptyState} icon="search" title="Nothing matches"><p>A thing is written as the audit has it, such as <code>relay:orders</code> or <code>person:per_…</code>.</p>
    <button type="button" onClick=${showAll}>Show all</button><//>`;
}
