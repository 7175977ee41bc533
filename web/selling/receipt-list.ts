/** List of purchases and refunds with their person, relay and event. Any purchase can be moved or refunded here. */
import { useState } from "preact/hooks";
import type { RefundPreview } from "../../src/shop/selling/manual-refund.ts";
import type { PurchaseView } from "../../src/shop/selling/purchase.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useList } from "../base/use-list.ts";
import { useLoad } from "../base/use-load.ts";
import { Choice } from "../component/choice.ts";
import { Dialog } from "../component/dialog.ts";
import { EmptyState, LoadingState, Notice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PersonLink } from "../component/person-link.ts";
import { SafeText } from "../component/safe-text.ts";
import { SearchBox } from "../component/search-box.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { fromColumn } from "./from-column.ts";
import { formatAmount } from "./money.ts";
import { MoveDialog } from "./move-dialog.ts";
import { PaymentButton } from "./payment-dialog.ts";

export function ReceiptList({ place, query }: { place: Place; query: URLSearchParams }): View {
  const filter = { kind: query.get("kind"), ref: query.get("ref"), person: query.get("person") };
  const list = useList<PurchaseView>(apiPath(place, "purchases") + writeQuery(filter), 10_000);
  const [refunding, setRefunding] = useState<PurchaseView | null>(null);
  const [moving, setMoving] = useState<PurchaseView | null>(null);
  const { items, error, reload } = list;
  const isFiltered = Object.values(filter).some((value) => value !== null);
  return html`<div class="tab-actions"><${PaymentButton} place=${place} person=${null} /></div>
    <div class="filters" role="search" aria-label="Filter receipts">
      <${SearchBox} value=${filter.ref ?? ""} label="Find by complete ref" onValue=${(ref: string) => setQuery({ ref: ref.trim() })} />
      <${Choice} name="kind" label="Kind" none="Purchases and refunds" query=${query} options=${[
        ["purchase", "Purchases"],
        ["refund", "Refunds"],
        ["confirmation", "Confirmations"],
      ]} />
      ${filter.person !== null && html`<button type="button" class="chip" onClick=${() => setQuery({ person: "" })}>of one person ×</button>`}
    </div>
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} onRetry=${reload} />`
        : items.length === 0
          ? html`<${EmptyState} icon="selling" title=${isFiltered ? "No receipt matches" : "No purchases yet"}>
            <p>${isFiltered ? "Enter the complete ref, as the provider writes it." : "Each product that a relay fulfills and each recorded payment has a receipt here."}</p><//>`
          : html`<${Table} label="Receipts" columns=${columnsOf(place, setMoving, setRefunding)} items=${items} />
            <${OlderButton} list=${list} none="No more entries." />`
    }
    ${moving !== null && html`<${MoveDialog} place=${place} purchase=${moving} onClose=${() => setMoving(null)} />`}
    ${refunding !== null && html`<${Refund} place=${place} purchase=${refunding} onClose=${() => setRefunding(null)} />`}`;
}

function columnsOf(
  place: Place,
  onMove: (purchase: PurchaseView) => void,
  onRefund: (purchase: PurchaseView) => void,
): Column<PurchaseView>[] {
  return [
    {
      name: "bought",
      title: "What",
      priority: 1,
      cell: ({ item, itemKind, ref }) =>
        html`<span class="clip"><b>${item}</b>${itemKind === "plan" && " (plan)"}${" "}<span class="quiet mono"><${SafeText} text=${ref} limit=${60} /></span></span>`,
    },
    {
      name: "state",
      title: "State",
      priority: 2,
      size: "short",
      cell: ({ kind, refundedBy, movedTo }) =>
        movedTo !== null && kind === "purchase"
          ? html`<${StateMark} state="skipped" word="Moved" />`
          : kind !== "purchase"
            ? html`<${StateMark} state="skipped" word=${kind === "refund" ? "Refund" : "Confirmation"} />`
            : refundedBy === null
              ? html`<${StateMark} state="done" word="Paid" />`
              : html`<${StateMark} state="skipped" word="Refunded" />`,
    },
    {
      name: "amount",
      title: "Amount",
      priority: 3,
      size: "short",
      cell: ({ amountMinor, currency }) =>
        formatAmount(amountMinor, currency) ?? html`<span class="quiet">–</span>`,
    },
    {
      name: "person",
      title: "Person",
      priority: 2,
      size: "address",
      cell: ({ person, personEmail }) =>
        html`<${PersonLink} place=${place} id=${person} email=${personEmail} />`,
    },
    fromColumn(place),
    timeColumn("time", "When", 2, ({ createdAt }) => createdAt),
    {
      name: "end",
      title: "",
      priority: 1,
      cell: (purchase) =>
        mayRefund(purchase) &&
        html`<button data-needs="act_on_people" type="button" class="quiet" aria-label="Move… ${purchase.item} ${purchase.ref}" onClick=${() => onMove(purchase)}>Move…</button>
          <button data-needs="act_on_people" type="button" class="quiet-danger" aria-label="Refund… ${purchase.item} ${purchase.ref}" onClick=${() => onRefund(purchase)}>Refund…</button>`,
    },
  ];
}

function mayRefund({ kind, refundedBy, movedTo }: PurchaseView): boolean {
  return kind === "purchase" && refundedBy === null && movedTo === null;
}

/** Dialog that shows what a refund takes back before it runs. */
function Refund({
  place,
  purchase,
  onClose,
}: {
  place: Place;
  purchase: PurchaseView;
  onClose: () => void;
}): View {
  const { send, isSending, error } = useSend();
  const { id, person, personEmail, item } = purchase;
  const path = apiPath(place, "purchases", id, "refund");
  const { data, error: unread, reload } = useLoad<{ plan: RefundPreview }>(path);
  const refund = async (): Promise<void> => {
    const changes = ["purchases", "subscriptions", "persons", "grants"].map((part) => apiPath(place, part));
    const done = `What ${item} gave is taken back.`;
    if ((await send({ method: "POST", path, changes, done })) !== null) onClose();
  };
  return html`<${Dialog} title="Take back what ${item} gave ${personEmail ?? person}?" onClose=${onClose}>
    ${
      data === undefined
        ? html`<${LoadingState} error=${unread} rows=${2} onRetry=${reload} />`
        : html`<p><${Sentence} text=${data.plan.message} /></p>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending || data === undefined} onClick=${() => void refund()}>${isSending ? "Taking back…" : "Take back"}</button></div><//>`;
}
