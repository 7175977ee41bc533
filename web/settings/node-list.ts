/** Nodes that serve the same database, with the environments that each one runs. Hidden if the service lists none. */
import type { NodesView } from "../../src/interfaces/api/server.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { LoadingState } from "../component/notice.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";

type Node = NodesView[number];

/** Refresh interval, which shows soon that a node ended and which node runs its environments now. */
const REFRESH_MS = 5_000;

const COLUMNS: readonly Column<Node>[] = [
  {
    name: "node",
    title: "Node",
    priority: 1,
    cell: ({
      host,
      pid,
      url,
      answers,
    }) => html`<div class="two-lines"><span><b>${host}</b>${answers && " (this page)"}</span>
      <span class="quiet">process ${pid}${url !== null && html`, <code>${url}</code>`}</span></div>`,
  },
  {
    name: "runs",
    title: "Runs",
    priority: 2,
    cell: ({ live, house, environments }) =>
      live
        ? html`<span class="wrap">${[...(house ? ["tasks of the whole server"] : []), ...environments.map(({ app, environment }) => `${app} ${environment}`)].join(", ") || html`<span class="quiet">no tasks of its own</span>`}</span>`
        : html`<span class="quiet">nothing: the node does not respond</span>`,
  },
  { name: "version", title: "Version", priority: 4, size: "short", cell: ({ version }) => version },
  timeColumn("since", "Since", 3, ({ startedAt }) => startedAt),
];

export function NodeList(): View {
  const { data, error, reload } = useLoad<{ nodes: NodesView }>("/api/nodes", REFRESH_MS);
  if (data === undefined)
    return error === null ? null : html`<${LoadingState} error=${error} onRetry=${reload} />`;
  if (data.nodes.length === 0) return null;
  return html`<section class="setting-after" aria-label="Nodes"><h2>Nodes</h2>
    <p class="tab-lead">Each node receives requests, runs events that only use the database, and serves this dashboard. One node runs the schedules, retries and outgoing calls of an environment. If it stops, another node takes over.</p>
    <${Table} label="Nodes" columns=${COLUMNS} items=${data.nodes} /></section>`;
}
