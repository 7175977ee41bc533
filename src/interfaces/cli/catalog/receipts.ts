/** Lists payments, and takes back what a purchase gave (`relay receipts …`), as Refund… does on the dashboard's Catalog page. It moves no money. */

import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { formatAmount } from "../../../insight/timeline/sentence.ts";
import type { RefundPreview } from "../../../shop/selling/manual-refund.ts";
import { type PurchaseView, RECEIPT_KINDS } from "../../../shop/selling/purchase.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

export const receiptsList: Command = {
  words: ["receipts", "list"],
  summary: "list receipts and refunds, newest first",
  options: [
    {
      name: "person",
      value: "<address, id or token>",
      help: "only receipts of this person; an unknown person is an error",
    },
    { name: "ref", value: "<ref>", help: "only the receipt with this ref, and its refund" },
    { name: "kind", value: "<kind>", help: "purchase, refund or confirmation", of: RECEIPT_KINDS },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay receipts list --person ada@example.com", "relay receipts list --ref pay_7"],
  async run(input, io) {
    const kind = input.choice("kind", RECEIPT_KINDS) ?? undefined;
    const [named, ref] = [input.text("person") ?? undefined, input.text("ref") ?? undefined];
    const time = { of: (one: PurchaseView) => one.createdAt, ordered: true };
    const receipts = await listItems<PurchaseView>(
      input,
      io,
      "/purchases",
      { kind, ref, person: named },
      time,
    );
    await printList(input, io, receipts, {
      columns: [
        { heading: "AT", value: (one) => one.createdAt },
        { heading: "STATE", value: stateOf, tone: true },
        { heading: "ITEM", value: (one) => one.item },
        {
          heading: "AMOUNT",
          value: (one) => formatAmount(one.amountMinor, one.currency) ?? "",
          right: true,
        },
        { heading: "ADDRESS", value: (one) => one.personEmail ?? "(erased)", raw: true },
        { heading: "FROM", value: fromOf },
        { heading: "REF", value: (one) => one.ref, wrap: true, raw: true },
      ],
      none: "No receipt matches.",
    });
  },
};

function stateOf({ kind, refundedBy, movedTo }: PurchaseView): string {
  if (movedTo !== null) return kind === "refund" ? "taken back" : "moved";
  if (kind !== "purchase") return kind;
  return refundedBy === null ? "paid" : "refunded";
}

/** Returns who made a receipt. A refund of a relay's purchase that names no relay was made by hand. */
function fromOf({ relay, origin }: PurchaseView): string {
  return relay ?? (origin === "relay" ? "by hand" : origin);
}

interface Refunded {
  /** The receipt of the refund, or of the purchase if it was already refunded. */
  receipt: PurchaseView;
  created: boolean;
}

export const receiptsRefund: Command = {
  words: ["receipts", "refund"],
  summary: "take back what a purchase granted",
  details:
    "No money moves: refund the payment where it was taken. The purchase can come from a relay, from your server or from relay receipts record. The command first shows what the person loses: the access and credits of a product, or the plan unless a later payment pays for it. Relay stores a refund next to the receipt.",
  arguments: [{ name: "ref", help: "the ref of the payment, as relay receipts list shows it" }],
  options: [
    {
      name: "confirm",
      value: "<ref>",
      help: "the ref again: takes back without a question",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay receipts refund pay_7 --confirm pay_7"],
  async run(input, io) {
    const ref = input.first();
    requireSame(input, "ref", ref);
    const made = await withApi<Refunded>("write", input, io, async (api) => {
      const { items } = await api.list<PurchaseView>("/purchases", { ref, kind: "purchase" }, 1);
      const bought = requireBought(ref, items[0]);
      const path = `/purchases/${encodeURIComponent(bought.id)}/refund`;
      await askFirst(
        input,
        io,
        bought,
        async () => (await api.request<{ plan: RefundPreview }>("GET", path)).plan,
      );
      return await api.request<Refunded>("POST", path);
    });
    if (input.on("json")) io.print(writeJson(made, 2));
    const { receipt, created } = made;
    const what = `What ${receipt.item} granted to ${receipt.personEmail ?? receipt.person}`;
    io.inform(
      created
        ? `${what} is taken back, and a refund is stored next to the receipt.`
        : `${what} was already taken back: nothing changed.`,
    );
  },
};

/** Returns the payment under a ref. Throws `not_found`. */
export function requireBought(ref: string, bought: PurchaseView | undefined): PurchaseView {
  if (bought !== undefined) return bought;
  throw new Refusal(
    "not_found",
    `There is no payment with the ref ${JSON.stringify(ref)}: relay receipts list shows the refs.`,
  );
}

/** Shows what the refund takes back, and asks unless the command confirms it. After an earlier refund there is nothing to ask. */
async function askFirst(
  input: Input,
  io: Io,
  { ref, item, refundedBy }: PurchaseView,
  readPlan: () => Promise<RefundPreview>,
): Promise<void> {
  if (refundedBy !== null) return;
  io.inform((await readPlan()).message);
  if (input.given("confirm")) return;
  await requireYes(io, {
    question: `Take back what ${item} granted?`,
    undone: "Nothing was taken back",
    line: `relay receipts refund ${ref} --confirm ${ref}`,
  });
}
