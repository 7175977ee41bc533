/** List of subscriptions: the person, the plan, its start, and its relay and event. A subscription can be ended here. */
import { useState } from "preact/hooks";
import type { SubscriptionItem } from "../../src/shop/selling/subscription.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { Dialog } from "../component/dialog.ts";
import { EmptyState, LoadingState, Notice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PersonLink } from "../component/person-link.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { fromColumn } from "./from-column.ts";

export function SubscriptionList({ place, query }: { place: Place; query: URLSearchParams }): View {
  const status = query.get("status");
  const filter = { status, person: query.get("person") };
  const list = useList<SubscriptionItem>(apiPath(place, "subscriptions") + writeQuery(filter), 10_000);
  const [ending, setEnding] = useState<SubscriptionItem | null>(null);
  const { items, error, reload } = list;
  return html`<div class="filters" role="search" aria-label="Filter subscriptions">
      <${Choice} name="status" label="State" none="Active and ended" query=${query} options=${[
        ["active", "Active"],
        ["ended", "Ended"],
      ]} /></div>
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} onRetry=${reload} />`
        : items.length === 0
          ? html`<${EmptyState} icon="selling" title=${status === null ? "No subscriptions yet" : "No subscription matches"}>
            <p>A relay moves a person to a plan with <code>grant_plan</code>; record other payments under <a href=${pagePath(place, "catalog")}?tab=receipts>Receipts</a>, or from your server.</p><//>`
          : html`<${Table} label="Subscriptions" columns=${columnsOf(place, setEnding)} items=${items} />
            <${OlderButton} list=${list} none="No more entries." />`
    }
    ${ending !== null && html`<${End} place=${place} of=${ending} onClose=${() => setEnding(null)} />`}`;
}

function columnsOf(place: Place, onEnd: (one: SubscriptionItem) => void): Column<SubscriptionItem>[] {
  return [
    { name: "bought", title: "Plan", priority: 1, size: "name", cell: ({ plan }) => html`<b>${plan}</b>` },
    {
      name: "person",
      title: "Person",
      priority: 2,
      cell: ({ person, personEmail }) =>
        html`<${PersonLink} place=${place} id=${person} email=${personEmail} />`,
    },
    {
      name: "state",
      title: "State",
      priority: 1,
      size: "short",
      cell: ({ status }) =>
        status === "active"
          ? html`<${StateMark} state="active" />`
          : html`<${StateMark} state="skipped" word="Ended" />`,
    },
    fromColumn(place),
    timeColumn("time", "Since", 2, ({ startedAt }) => startedAt),
    {
      name: "until",
      title: "Renewed, ended",
      priority: 4,
      size: "name",
      cell: ({ renewedAt, endedAt }) => html`<${Ago} at=${endedAt ?? renewedAt} none="–" />`,
    },
    {
      name: "end",
      title: "",
      priority: 1,
      size: "short",
      cell: (one) =>
        one.status === "active" &&
        html`<button data-needs="act_on_people" type="button" class="quiet-danger" aria-label="End… ${one.plan} of ${one.personEmail ?? one.person}" onClick=${() => onEnd(one)}>End…</button>`,
    },
  ];
}

function End({ place, of, onClose }: { place: Place; of: SubscriptionItem; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const end = async (): Promise<void> => {
    const path = apiPath(place, "subscriptions", of.id, "end");
    const changes = [apiPath(place, "subscriptions"), apiPath(place, "persons"), apiPath(place, "grants")];
    if (
      (await send({ method: "POST", path, changes, done: `The subscription on ${of.plan} has ended.` })) !==
      null
    )
      onClose();
  };
  return html`<${Dialog} title="End ${of.plan} of ${of.personEmail ?? of.person}?" onClose=${onClose}>
    <p>The person moves to the default plan at once, and the access of the plan ends. Manual grants and purchases stay.${
      of.billedBy === "processor" &&
      html` <b>Your processor continues to bill it</b> until you end it there too.`
    }</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void end()}>${isSending ? "Ending…" : "End subscription"}</button></div><//>`;
}
