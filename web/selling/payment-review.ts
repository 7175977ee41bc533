/** Preview of what a payment gives, shown before it is recorded. */
import { useEffect, useState } from "preact/hooks";
import type { PersonView } from "../../src/shop/people/person.ts";
import type { PurchaseView } from "../../src/shop/selling/purchase.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { mayBeDone, useSend } from "../component/use-send.ts";
import { formatAmount } from "./money.ts";

export interface Payment {
  ref: string;
  itemKind: "product" | "plan";
  item: string;
  person: PersonView;
  /** Current plan of the person by a subscription. */
  plan: string | null;
  /** Entitlement that the product grants. */
  entitlement: string;
  credits: number;
  /** Relay that sells the item. */
  relay: string | null;
  customer: string;
  amountMinor?: number;
  currency?: string;
}

/** Delay before the button works, so that the second click of a double click does not press it. */
const STILL_MS = 500;

export function PaymentReview({
  place,
  payment,
  onBack,
  onClose,
}: {
  place: Place;
  payment: Payment;
  onBack: () => void;
  onClose: () => void;
}): View {
  const { send, isSending, error, code } = useSend();
  const [isRead, setRead] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setRead(true), STILL_MS);
    return () => clearTimeout(timer);
  }, []);
  const { ref, itemKind, item, person, amountMinor, currency, customer, relay } = payment;
  const record = async (): Promise<void> => {
    const body = {
      ...{ ref, person: person.id, [itemKind]: item, amountMinor, currency },
      ...(customer === "" ? {} : { processorCustomerId: customer }),
    };
    const changes = ["purchases", "subscriptions", "persons", "grants", "overview"].map((part) =>
      apiPath(place, part),
    );
    const path = apiPath(place, "receipts");
    const done = (answer: Recorded): string => formatDone(answer, payment);
    if ((await send<Recorded>({ method: "POST", path, body, changes, done })) !== null) onClose();
  };
  const amount = formatAmount(amountMinor ?? null, currency ?? null);
  return html`<${Dialog} title="Record this payment?" onClose=${onClose}>
    <p><b class="wrap"><${SafeText} text=${person.email} limit=${100} /></b> paid ${amount !== null && html`<b>${amount}</b> for `}the ${itemKind} <b>${item}</b>, under <code class="wrap">${ref}</code>.</p>
    <p><${Gives} payment=${payment} /> Relay writes a permanent receipt. <b>Relay moves no money.</b></p>
    ${person.status === "suspended" && html`<${Notice} kind="warn">The person is suspended and cannot use the access until you activate them.<//>`}
    ${
      relay !== null &&
      html`<${Notice} kind="warn">The relay <b>${relay}</b> sells it too: ${
        itemKind === "product"
          ? "if that relay uses another ref for this payment, it gives the item a second time."
          : "from now on you bill the plan. Payments that this relay receives fail until you end the plan under Subscriptions."
      }<//>`
    }
    ${
      error !== null &&
      html`<${Notice} kind="bad"><p><${Sentence} text=${error} /></p>${
        mayBeDone(code) &&
        html`<p>The result is unknown. Record payment again with the same ref when the service answers. Relay records it only once.</p>`
      }<//>`
    }
    <div class="dialog-actions"><button type="button" onClick=${onBack}>Back</button>
      <button type="button" class="primary" disabled=${isSending || !isRead} onClick=${() => void record()}>${isSending ? "Recording…" : "Record payment"}</button></div><//>`;
}

function Gives({ payment: { itemKind, item, entitlement, credits, plan } }: { payment: Payment }): View {
  if (itemKind === "product")
    return html`They get <b>${entitlement}</b> permanently${credits > 0 && html`, and <b>${formatCount(credits, "credit")}</b>`}.`;
  if (plan === item) return html`They stay on the plan <b>${item}</b> until you end it. No relay ends it.`;
  return html`They are on the plan <b>${item}</b> from now on, until you end it. No relay ends it.${
    plan !== null && html` Their plan <b>${plan}</b> ends.`
  }`;
}

interface Recorded {
  receipt: PurchaseView;
  created: boolean;
}

function formatDone({ receipt, created }: Recorded, { person }: Payment): string {
  const { ref, item, itemKind, amountMinor, currency } = receipt;
  if (created)
    return itemKind === "plan"
      ? `The payment ${ref} is recorded: ${person.email} is on ${item}.`
      : `The payment ${ref} is recorded: ${person.email} has ${item}.`;
  const amount = formatAmount(amountMinor, currency);
  return `The payment ${ref} was recorded before${amount === null ? "" : `, with ${amount}`}: nothing changed.`;
}
