/** Limits in force: what each counts, its value, where the value comes from, and what happens at the limit. */
import type { ServerView } from "../../src/interfaces/api/server.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { LoadingState } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { type Column, Table } from "../component/table.ts";
import { useLimits } from "./limit-usage.ts";

/** `used`: null for a limit that is not measured. */
type Limit = ServerView["limits"][number] & { id: string; used: number | null };

const COLUMNS: readonly Column<Limit>[] = [
  {
    name: "limit",
    title: "Limit of",
    priority: 1,
    cell: ({ counts, hit }) =>
      html`<div class="two-lines">${counts}<span class="quiet"><${Sentence} text=${hit} /></span></div>`,
  },
  {
    name: "value",
    title: "Limit",
    priority: 2,
    size: "name",
    cell: ({ value }) => html`<b>${formatNumber(value)}</b>`,
  },
  {
    name: "used",
    title: "Used here",
    priority: 1,
    size: "name",
    cell: ({ used, value }) =>
      used === null
        ? html`<span class="quiet">not measured</span>`
        : html`<span class="two-lines">${formatNumber(used)}<span class="quiet">${Math.floor((100 * used) / value)} %</span></span>`,
  },
  {
    name: "from",
    title: "From",
    priority: 2,
    cell: ({ value, usual, variable }) => html`<span class="two-lines">
      ${value === usual ? "default" : html`<b>set by you</b>, ${formatNumber(usual)} by default`}
      <span class="quiet"><code>${variable}</code></span></span>`,
  },
];

export function LimitList({ place }: { place: Place }): View {
  const measured = new Map<string, number>(useLimits(place).map(({ name, used }) => [name, used]));
  const { data, error, reload } = useLoad<{ server: ServerView }>("/api/server");
  if (data === undefined) return html`<${LoadingState} error=${error} onRetry=${reload} />`;
  const items = data.server.limits.map((limit) => ({
    ...limit,
    id: limit.name,
    used: measured.get(limit.name) ?? null,
  }));
  return html`<p class="tab-lead">These limits apply to the whole server. Used here counts this environment, and for mails the whole app. To change a limit, set its variable, for example <code>RELAY_LIMIT_RELAYS=50</code>, and restart the server.</p>
    <div class="limits"><${Table} label="Limits" columns=${COLUMNS} items=${items} /></div>`;
}
