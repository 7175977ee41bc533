/** Lists of alerts and problems, open and ended, newest first. An alert shows who resolved it, a problem shows when it ended. */
import type { AlertView } from "../../src/platform/audit/alert.ts";
import type { ProblemView } from "../../src/platform/audit/problem.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { Code } from "../component/code.ts";
import { Explanation } from "../component/explanation.ts";
import { EmptyState, LoadingState } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { needPaths } from "../home/attention-item.ts";
import { formatKind } from "./kind-text.ts";

const REFRESH_MS = 10_000;

export function AlertList({ place, query }: { place: Place; query: URLSearchParams }): View {
  const open = query.get("open");
  const list = useList<AlertView>(apiPath(place, "alerts") + writeQuery({ open }), REFRESH_MS);
  const { send, isSending } = useSend();
  const { items, error, reload } = list;
  const resolve = (id: string) =>
    send({
      method: "POST",
      path: apiPath(place, "alerts", id, "resolve"),
      changes: needPaths(place),
      done: "Alert marked as resolved. A new occurrence raises a new alert.",
      tellsRefusal: true,
    });
  const filter = html`<div class="filters" role="search" aria-label="Filter alerts">
    <${Choice} name="open" label="State" none="Open and resolved" query=${query} options=${[["true", "Open"]]} /></div>`;
  if (items === undefined)
    return html`${filter}<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`;
  if (items.length === 0)
    return html`${filter}<${EmptyState} icon="check" title=${open === null ? "No alerts yet" : "No open alerts"}><p>Relay raises an alert when events are dead, when requests are rejected repeatedly, and when a relay goes silent. Alerts appear here, are mailed to the owners if mail is set up, and go to the channels.</p><//>`;
  const columns: Column<AlertView>[] = [
    {
      name: "what",
      title: "Alert",
      priority: 1,
      cell: ({
        code,
        docs,
        target,
        hints,
        message,
        todo,
        next,
        count,
        resolvedAt,
      }) => html`<div class="two-lines">
        <${Target} place=${place} target=${target} />${" "}<${Kind} code=${code} docs=${docs} />${count > 1 && html` <span class="chip">${count} times</span>`}
        ${resolvedAt === null ? html`<${Explanation} hints=${hints} what=${message} todo=${todo} next=${next} />` : html`<span class="quiet"><${Sentence} text=${message} /></span>`}
        <${CommandLine} texts=${[message, todo]} /></div>`,
    },
    {
      name: "state",
      title: "State",
      priority: 2,
      size: "name",
      cell: (alert) => html`<${AlertState} alert=${alert} />`,
    },
    {
      name: "time",
      title: "Last",
      priority: 2,
      size: "short",
      cell: ({ lastAt, mailedAt }) =>
        html`<${Ago} at=${lastAt} />${mailedAt !== null && html`<span class="quiet told-mailed"> mailed</span>`}`,
    },
    {
      name: "acts",
      title: "",
      priority: 2,
      size: "name",
      cell: (alert) =>
        html`<span class="row-acts"><${Way} place=${place} alert=${alert} />${
          alert.resolvedAt === null &&
          html`<button data-needs="replay" type="button" disabled=${isSending} aria-label="Resolve: ${formatKind(alert.code) ?? alert.code}, ${alert.target}" onClick=${() => void resolve(alert.id)}>Resolve</button>`
        }</span>`,
    },
  ];
  return html`${filter}<section aria-label="Alerts"><${Table} label="Alerts" columns=${columns} items=${items} />
    <${OlderButton} list=${list} none="No more entries." /></section>`;
}

function AlertState({ alert: { resolvedAt, resolvedBy } }: { alert: AlertView }): View {
  if (resolvedAt === null) return html`<${StateMark} state="failed" word="Open" />`;
  const by = resolvedBy === "itself" ? "automatically" : `by ${resolvedBy?.replace(/^owner:/, "")}`;
  return html`<span class="two-lines"><${StateMark} state="done" word="Resolved" /><span class="quiet">${by}, <${Ago} at=${resolvedAt} /></span></span>`;
}

/** Button to the page that shows the cause of the alert. */
function Way({ place, alert: { code, target } }: { place: Place; alert: AlertView }): View {
  const relay = target.replace(/^relay:/, "");
  if (code === "relay_failed")
    return html`<a class="button" href=${pagePath(place, "events") + writeQuery({ relay, state: "dead" })}>Dead events</a>`;
  if (code === "mail_unknown")
    return html`<a class="button" href=${pagePath(place, "mail") + writeQuery({ state: "unknown" })}>These mails</a>`;
  if (code === "sender_domain_required")
    return html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "mail") + writeQuery({ tab: "domain" })}>Set a domain</a>`;
  return null;
}

export function ProblemHistory({ place, query }: { place: Place; query: URLSearchParams }): View {
  const all = query.get("all");
  const list = useList<ProblemView>(apiPath(place, "problems") + writeQuery({ all }), REFRESH_MS);
  const { items, error, reload } = list;
  const filter = html`<div class="filters" role="search" aria-label="Filter problems">
    <${Choice} name="all" label="State" none="Open" query=${query} options=${[["true", "Open and resolved"]]} /></div>`;
  if (items === undefined)
    return html`${filter}<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`;
  if (items.length === 0)
    return html`${filter}<${EmptyState} icon="check" title="No open problems"><p>A problem stays open as long as its cause exists, and resolves automatically.</p><//>`;
  const columns: Column<ProblemView>[] = [
    {
      name: "what",
      title: "Problem",
      priority: 1,
      cell: ({ code, docs, target, hints, message, todo, next, clearedAt }) => html`<div class="two-lines">
        <${Target} place=${place} target=${target} />${" "}<${Kind} code=${code} docs=${docs} />
        ${clearedAt === null ? html`<${Explanation} hints=${hints} what=${message} todo=${todo} next=${next} />` : html`<span class="quiet"><${Sentence} text=${message} /></span>`}
        <${CommandLine} texts=${[message, todo]} /></div>`,
    },
    {
      name: "state",
      title: "State",
      priority: 2,
      size: "short",
      cell: ({ clearedAt }) =>
        clearedAt === null
          ? html`<${StateMark} state="failed" word="Open" />`
          : html`<${StateMark} state="done" word="Resolved" />`,
    },
    timeColumn("since", "Since", 2, ({ raisedAt }) => raisedAt),
    {
      name: "until",
      title: "Until",
      priority: 3,
      size: "short",
      cell: ({ clearedAt }) => html`<${Ago} at=${clearedAt} none="–" />`,
    },
  ];
  return html`${filter}<section aria-label="Problems"><${Table} label="Problems" columns=${columns} items=${items} />
    <${OlderButton} list=${list} none="No more entries." /></section>`;
}

/** Shows the kind in words if it has any, next to the code that the API uses. */
function Kind({ code, docs }: { code: string; docs: string | undefined }): View {
  const words = formatKind(code);
  return html`${words !== null && html`<span>${words}</span> `}<${Code} code=${code} docs=${docs} />`;
}

/** Links a target such as `relay:order-paid` if it has a page. */
function Target({ place, target }: { place: Place; target: string }): View {
  const [kind, name] = [target.slice(0, target.indexOf(":")), target.slice(target.indexOf(":") + 1)];
  if (kind === "relay") return html`<a data-row href=${pagePath(place, "relays", name)}>${name}</a>`;
  if (kind === "event") return html`<a data-row href=${pagePath(place, "events", name)}>${name}</a>`;
  return html`<b>${target}</b>`;
}
