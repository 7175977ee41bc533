/**
 * Dialog that records a payment that was made elsewhere, in two steps: the payment, then a preview of what the person
 * gets. The ref identifies the payment, so sending it again returns the existing receipt.
 */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { PersonItem } from "../../src/shop/people/person-list.ts";
import type { SoldThrough } from "../../src/shop/selling/catalog-item.ts";
import type { PurchaseView } from "../../src/shop/selling/purchase.ts";
import type { Page } from "../base/answer.ts";
import { call, sentenceOf, writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { formatAmount, readAmount } from "./money.ts";
import { type Payment, PaymentReview } from "./payment-review.ts";

interface Item {
  name: string;
  title: string;
  key?: string;
  credits?: number;
  soldThrough: SoldThrough | null;
}

/** Typed values, which stay when the user goes back. */
type Draft = Readonly<Record<"person" | "item" | "ref" | "amount" | "currency" | "customer", string>>;

interface Wrong {
  /** null: the error concerns no field. */
  field: keyof Draft | null;
  message: string;
}

interface Props {
  place: Place;
  /** Person who paid; null: the dialog asks for the person. */
  person: { id: string; email: string } | null;
}

export function PaymentButton({ place, person }: Props): View {
  const [isOpen, setOpen] = useState(false);
  return html`<button data-needs="act_on_people" type="button" class=${person === null ? "" : "small"} onClick=${() => setOpen(true)}>
      ${person === null && html`<${Icon} name="plus" size=${14} />`}Record a payment…</button>
    ${isOpen && html`<${PaymentDialog} place=${place} person=${person} onClose=${() => setOpen(false)} />`}`;
}

function useItems(place: Place): { products: Item[]; plans: Item[] } | null {
  const products = useLoad<Page<Item>>(`${apiPath(place, "products")}?limit=200`).data;
  const plans = useLoad<Page<Item>>(`${apiPath(place, "plans")}?limit=200`).data;
  return products === undefined || plans === undefined
    ? null
    : { products: products.items, plans: plans.items };
}

function PaymentDialog({ place, person, onClose }: Props & { onClose: () => void }): View {
  const items = useItems(place);
  const [draft, setDraft] = useState<Draft>({
    ...{ person: person?.id ?? "", item: "", ref: "", amount: "", currency: "", customer: "" },
  });
  const [payment, setPayment] = useState<Payment | null>(null);
  const [wrong, setWrong] = useState<Wrong | null>(null);
  const [isLooking, setLooking] = useState(false);
  const review = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const read = (name: keyof Draft): string => String(form.get(name) ?? draft[name]).trim();
    const typed: Draft = {
      ...{ person: read("person"), item: read("item"), ref: read("ref") },
      ...{ amount: read("amount"), currency: read("currency"), customer: read("customer") },
    };
    setDraft(typed);
    setLooking(true);
    const found = await lookAt(place, typed, items).catch((thrown) => ({
      field: null,
      message: sentenceOf(thrown),
    }));
    setLooking(false);
    setWrong("message" in found ? found : null);
    if (!("message" in found)) setPayment(found);
  };
  if (items !== null && items.products.length + items.plans.length === 0)
    return html`<${Dialog} title="Record a payment" onClose=${onClose}>
      <p>There is nothing to sell yet. First create a product or a plan in the <a href=${pagePath(place, "catalog")}>Catalog</a>.</p>
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>Close</button></div><//>`;
  if (payment !== null)
    return html`<${PaymentReview} place=${place} payment=${payment} onBack=${() => setPayment(null)} onClose=${onClose} />`;
  const at = (field: keyof Draft): View =>
    wrong?.field === field &&
    html`<small class="field-problem" role="alert"><${Sentence} text=${wrong.message} /></small>`;
  const isPlan = draft.item.startsWith("plan:");
  return html`<${Dialog} title=${person === null ? "Record a payment" : `Record a payment of ${person.email}`} onClose=${onClose}><form class="stack" onSubmit=${review}>
    <p class="quiet">For payments that no relay receives: a bank transfer, an invoice or your own processor. Relay moves no money.</p>
    ${
      person === null &&
      html`<label class="field"><span>Person</span><input name="person" required autofocus autocomplete="off" spellcheck=${false} defaultValue=${draft.person} />
        <small>Email address or id.</small>${at("person")}</label>`
    }
    <label class="field"><span>Paid item</span>
      <select name="item" required autofocus=${person !== null} onChange=${(event: Event) => setDraft({ ...draft, item: (event.target as HTMLSelectElement).value })}>
        <option value="" selected=${draft.item === ""}>Choose…</option>
        ${groupsOf(items).map(
          ([title, kind, all]) =>
            html`<optgroup key=${kind} label=${title}>${all.map(({ name, title: words }) => html`<option key=${name} value=${`${kind}:${name}`} selected=${draft.item === `${kind}:${name}`}>${name}${words !== name && ` · ${words}`}</option>`)}</optgroup>`,
        )}</select>${at("item")}</label>
    <label class="field"><span>Ref</span><input name="ref" required autocomplete="off" spellcheck=${false} defaultValue=${draft.ref} />
      <small>The payment id of your processor, or the invoice number. Each ref is one payment.</small>${at("ref")}</label>
    <div class="money-fields"><label class="field"><span>Amount</span><input name="amount" inputmode="decimal" autocomplete="off" placeholder="42.00" defaultValue=${draft.amount} />${at("amount")}</label>
      <label class="field"><span>Currency</span><input name="currency" autocomplete="off" spellcheck=${false} maxlength="3" placeholder="EUR" defaultValue=${draft.currency} />${at("currency")}</label></div>
    ${
      isPlan &&
      html`<label class="field"><span>Customer id</span><input name="customer" autocomplete="off" spellcheck=${false} maxlength="200" defaultValue=${draft.customer} />
        <small>Optional: the customer id at your processor, if it bills the plan.</small></label>`
    }
    ${wrong !== null && wrong.field === null && html`<${Notice} kind="bad"><${Sentence} text=${wrong.message} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isLooking || items === null}>${isLooking ? "Searching…" : "Preview payment"}</button></div>
  </form><//>`;
}

function groupsOf(items: ReturnType<typeof useItems>): (readonly [string, "product" | "plan", Item[]])[] {
  const groups = [
    ["Products", "product", items?.products ?? []],
    ["Plans", "plan", items?.plans ?? []],
  ] as const;
  return groups.filter(([, , all]) => all.length > 0);
}

/** Returns the payment with what it would currently give. */
async function lookAt(
  place: Place,
  draft: Draft,
  items: ReturnType<typeof useItems>,
): Promise<Payment | Wrong> {
  const amount = readAmount(draft.amount, draft.currency);
  if ("message" in amount)
    return { field: amount.field === "currency" ? "currency" : "amount", message: amount.message };
  const [kind = "", name = ""] = draft.item.split(":");
  const itemKind = kind === "plan" ? "plan" : "product";
  const item = (itemKind === "plan" ? items?.plans : items?.products)?.find((one) => one.name === name);
  if (item === undefined) return { field: "item", message: "Choose the paid item." };
  const id = draft.person.startsWith("per_") ? draft.person : await findId(place, draft.person);
  if (id === null)
    return {
      field: "person",
      message: `No person here is ${draft.person}: write the address or id of a known person, or add the person in People first.`,
    };
  const asked = writeQuery({ ref: draft.ref, kind: "purchase", limit: 1 });
  const [now, under] = await Promise.all([
    call<PersonNow>("GET", apiPath(place, "persons", id)),
    call<Page<PurchaseView>>("GET", apiPath(place, "purchases") + asked),
  ]);
  const [before] = under.items;
  if (before !== undefined) return { field: "ref", message: formatTaken(before) };
  const { person, subscription } = now;
  return {
    ...{ ref: draft.ref, itemKind, item: name, person, plan: subscription?.plan ?? null },
    ...{ entitlement: item.key ?? name, credits: item.credits ?? 0, ...amount },
    relay: item.soldThrough?.kind === "relay" ? item.soldThrough.relay : null,
    customer: itemKind === "plan" ? draft.customer : "",
  };
}

async function findId(place: Place, email: string): Promise<string | null> {
  const { items } = await call<Page<PersonItem>>("GET", apiPath(place, "persons") + writeQuery({ email }));
  return items[0]?.id ?? null;
}

function formatTaken({
  ref,
  item,
  personEmail,
  person,
  amountMinor,
  currency,
  refundedBy,
}: PurchaseView): string {
  const amount = formatAmount(amountMinor, currency);
  return `${ref} is already recorded: ${personEmail ?? person} paid ${item}${amount === null ? "" : ` with ${amount}`}${refundedBy === null ? "" : ", which was refunded later"}. If this is another payment, enter its own ref. Otherwise the payment is already recorded.`;
}
