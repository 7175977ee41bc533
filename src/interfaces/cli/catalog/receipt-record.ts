/**
 * Records a payment that was taken elsewhere (`relay receipts record`), as Record a payment… does in the dashboard. The command first shows
 * what the person gets. The ref identifies the payment, so the command can run again after a lost answer and returns the same receipt.
 */

import { isCurrency } from "../../../base/currency.ts";
import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { formatAmount } from "../../../insight/timeline/sentence.ts";
import { type PersonView, rejectUnknownPerson } from "../../../shop/people/person.ts";
import type { PurchaseView } from "../../../shop/selling/purchase.ts";
import type { ReceiptInput } from "../../../shop/selling/receipt.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { NothingSent } from "../api/remote.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { findPerson } from "../people/people.ts";
import { count } from "../sync/plan-lines.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { readJsonObject } from "../terminal/read-json.ts";

const MAX_AMOUNT = 999_999_999_999;

interface Recorded {
  receipt: PurchaseView;
  /** False if the payment was recorded before. */
  created: boolean;
}

/** The item that the payment is for and the person who gets it, in their current state. */
interface Bought {
  person: { id: string; email: string; isSuspended: boolean; plan: string | null };
  /** The entitlement and the credits of a product. A plan's name is its entitlement. */
  key: string;
  credits: number;
  /** The relay that sells the item. */
  relay: string | null;
  /** The stored receipt with this ref. */
  before: PurchaseView | null;
}

type Payment = Omit<ReceiptInput, "person"> & { kind: "purchase" };

export const receiptsRecord: Command = {
  words: ["receipts", "record"],
  summary: "record a payment and grant what was bought",
  details:
    "Use this for a payment that was taken elsewhere: no money moves. The person gets what the product or plan grants, and a receipt that never changes. The command first shows what they get and asks. One ref is one payment: a second run with the same ref grants nothing again and returns the same receipt. Write the amount in the currency's smallest unit: 4200 for 42.00 EUR.",
  arguments: [{ name: "ref", help: "your processor's id of the payment, or the invoice number" }],
  options: [
    { name: "person", value: "<address or id>", help: "who paid" },
    { name: "product", value: "<name>", help: "the product that they paid for" },
    { name: "plan", value: "<name>", help: "the plan that they paid for" },
    { name: "amount-minor", value: "<number>", help: "the amount, in the currency's smallest unit" },
    { name: "currency", value: "<code>", help: "the currency of the amount: three letters such as EUR" },
    { name: "customer", value: "<id>", help: "for a plan: your processor's id of the customer" },
    { name: "data", value: "<json>", help: "any object to store with the receipt" },
    {
      name: "confirm",
      value: "<ref>",
      help: "the ref again: records without a question",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    "relay receipts record pay_7 --person ada@example.com --product premium",
    "relay receipts record inv-12 --person ada@example.com --plan pro --amount-minor 9900 --currency EUR",
  ],
  async run(input, io) {
    requireSame(input, "ref", input.first());
    const payment = readPayment(input);
    const who = input.text("person");
    if (who === null)
      throw new UsageError(
        "--person is missing: name who paid, by their address or by their id as relay people list shows it.",
      );
    const made = await withApi<Recorded>("write", input, io, async (api) => {
      const bought = await readBought(api, who, payment);
      await askFirst(input, io, payment, bought);
      const sent = { ...payment, person: bought.person.id };
      return await api.request<Recorded>("POST", "/receipts", sent).catch((error) => {
        if (error instanceof CommandFailure && !(error instanceof NothingSent))
          io.inform(
            "The answer was lost, so the payment may or may not be recorded. Run the command again with the same ref: the payment is then recorded once.",
          );
        throw error;
      });
    });
    if (input.on("json")) io.print(writeJson(made, 2));
    io.inform(made.created ? formatRecorded(made.receipt) : formatExisting(made.receipt));
    if (!made.created) requireAlike(payment, made.receipt);
  },
};

/** Reads the payment from the options. Throws UsageError. The service checks the rest. */
function readPayment(input: Input): Payment {
  const [product, plan, currency] = ["product", "plan", "currency"].map((name) => input.text(name));
  if ((product == null) === (plan == null))
    throw new UsageError(
      "Name what was paid: either a product with --product or a plan with --plan. relay catalog list shows both.",
    );
  const amount = readAmount(input.text("amount-minor"));
  if ((amount === null) !== (currency == null))
    throw new UsageError(
      amount === null
        ? "--currency needs an amount: add --amount-minor, or leave both out."
        : "--amount-minor needs a currency: add one, such as --currency EUR.",
    );
  if (currency != null && !isCurrency(currency))
    throw new UsageError(
      `--currency is ${JSON.stringify(currency)}, which is not a currency: write three capital letters, such as EUR.`,
    );
  const [customer, data] = [input.text("customer"), input.text("data")];
  return {
    kind: "purchase",
    ref: input.first(),
    ...(product == null ? {} : { product }),
    ...(plan == null ? {} : { plan }),
    ...(amount === null ? {} : { amountMinor: amount }),
    ...(currency == null ? {} : { currency }),
    ...(customer === null ? {} : { processorCustomerId: customer }),
    ...(data === null ? {} : { data: readJsonObject(data) }),
  };
}

function readAmount(text: string | null): number | null {
  if (text === null) return null;
  const amount = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (amount <= MAX_AMOUNT) return amount;
  throw new UsageError(
    `--amount-minor is ${JSON.stringify(text)}: write a whole number in the currency's smallest unit, such as 4200 for 42.00 EUR.`,
  );
}

interface Sold {
  soldThrough: { kind: string; relay?: string } | null;
}

function relayOf({ soldThrough }: Sold): string | null {
  return soldThrough?.relay ?? null;
}

async function readBought(api: Api, who: string, { ref, product, plan }: Payment): Promise<Bought> {
  const { id } = await findPerson(api, who);
  type Now = { person: PersonView; subscription: { plan: string } | null };
  const now = await api.request<Now>("GET", `/persons/${encodeURIComponent(id)}`).catch((error: unknown) => {
    throw error instanceof Refusal && error.code === "not_found" ? rejectUnknownPerson(who) : error;
  });
  const item = plan === undefined ? await readProduct(api, product ?? "") : await readPlan(api, plan);
  const { items } = await api.list<PurchaseView>("/purchases", { ref, kind: "purchase" }, 1);
  const { person, subscription } = now;
  return {
    person: {
      id,
      email: person.email,
      isSuspended: person.status === "suspended",
      plan: subscription?.plan ?? null,
    },
    key: item.key,
    credits: item.credits,
    relay: relayOf(item),
    before: items[0] ?? null,
  };
}

type Item = Sold & { key: string; credits: number };

async function readProduct(api: Api, name: string): Promise<Item> {
  const path = `/products/${encodeURIComponent(name)}`;
  return (await api.request<{ product: Item }>("GET", path)).product;
}

async function readPlan(api: Api, name: string): Promise<Item> {
  const { plan } = await api.request<{ plan: Sold }>("GET", `/plans/${encodeURIComponent(name)}`);
  return { ...plan, key: name, credits: 0 };
}

/** Shows what the person gets, and asks. A ref with a receipt gives nothing, so the command then asks nothing. */
async function askFirst(input: Input, io: Io, payment: Payment, bought: Bought): Promise<void> {
  if (bought.before !== null) return;
  const { ref, product, plan, amountMinor = null, currency = null } = payment;
  const { person, relay } = bought;
  const paid = formatAmount(amountMinor, currency);
  const lines = [
    `${ref}: ${person.email} paid ${paid === null ? "" : `${paid} for `}the ${plan === undefined ? `product ${product}` : `plan ${plan}`}. ${formatGiven(bought, plan)} Relay stores a receipt, and no money moves.`,
    ...(person.isSuspended
      ? [`They are suspended and cannot use it until you activate them: relay people activate ${person.id}.`]
      : []),
    ...(relay === null
      ? []
      : [
          plan === undefined
            ? `The relay ${relay} sells this product too. If the relay gets an event for this payment with a ref other than ${ref}, it grants the product again.`
            : `The relay ${relay} sells this plan too. From now on you bill the plan. Payment events of this relay wait and become dead (billed_by_processor) until you end the plan: relay people end ${person.id} ${plan}.`,
        ]),
  ];
  io.inform(lines.join("\n"));
  if (input.given("confirm")) return;
  await requireYes(io, {
    question: "Record this payment?",
    undone: "Nothing was recorded",
    line: `relay receipts record ${ref} … --confirm ${ref}`,
  });
}

function formatGiven({ person, key, credits }: Bought, plan: string | undefined): string {
  if (plan === undefined)
    return `They get ${key} permanently${credits === 0 ? "" : `, and ${count(credits, "credit")}`}.`;
  if (person.plan === plan) return `They stay on the plan ${plan} until you end it: no relay ends it.`;
  const before = person.plan === null ? "" : ` Their plan ${person.plan} ends.`;
  return `They move to the plan ${plan} and stay on it until you end it: no relay ends it.${before}`;
}

function formatBuyer({ personEmail, person }: PurchaseView): string {
  return personEmail ?? person;
}

function formatRecorded(receipt: PurchaseView): string {
  const { ref, itemKind, item, granted } = receipt;
  const credits =
    granted === null || granted === undefined || granted.credits === 0
      ? ""
      : ` and ${count(granted.credits, "credit")}`;
  const has =
    itemKind === "plan" ? `is on the plan ${item}` : `has ${granted?.entitlement ?? item}${credits} of it`;
  return `The payment ${ref} is recorded, and ${formatBuyer(receipt)} ${has}.`;
}

function formatExisting(receipt: PurchaseView): string {
  const { ref, item, createdAt, refundedBy } = receipt;
  const back = refundedBy === null ? "" : " It was refunded later, and stays refunded.";
  return `Nothing changed: the payment ${ref} was already recorded at ${createdAt}, for ${item} of ${formatBuyer(receipt)}.${back}`;
}

/** Fails if the command states another amount than the receipt with this ref, because it may be another payment. */
function requireAlike({ ref, amountMinor, currency }: Payment, receipt: PurchaseView): void {
  const given = formatAmount(amountMinor ?? null, currency ?? null);
  const stored = formatAmount(receipt.amountMinor, receipt.currency);
  if (given === null || given === stored) return;
  throw new CommandFailure(
    "ref_used",
    `The receipt of ${ref} has ${stored ?? "no amount"}, but this command has ${given}. A receipt never changes. Use another ref for another payment. To undo a mistaken payment for a product: relay receipts refund ${ref}.`,
  );
}
