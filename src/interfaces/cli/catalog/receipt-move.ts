/** Moves a purchase to another person (`relay receipts move`), as Move… does on the dashboard's Catalog page. */

import type { PurchaseView } from "../../../shop/selling/purchase.ts";
import type { Command } from "../command.ts";
import { makePlannedChange, PLANNED } from "../terminal/planned-change.ts";
import { requireBought } from "./receipts.ts";

interface Moved {
  plan: { message: string };
  receipt: PurchaseView;
  /** False if the person had the purchase before, or if it was refunded. */
  moved: boolean;
}

export const receiptsMove: Command = {
  words: ["receipts", "move"],
  summary: "move a purchase to another person",
  details:
    "For a person who paid under another address. The access, the unspent credits or the plan of the purchase move with its receipt. The ref stays, so a later refund finds the purchase. The command first shows what moves. No money moves.",
  arguments: [
    { name: "ref", help: "the payment's, as relay receipts list shows it" },
    { name: "person", help: "the new person's address, id or store account token" },
  ],
  options: PLANNED,
  examples: [
    "relay receipts move pay_7 ada@example.com --plan",
    "relay receipts move pay_7 ada@example.com --yes",
  ],
  async run(input, io) {
    const [ref = "", person = ""] = input.positionals;
    const made = await makePlannedChange<Moved>(input, io, async (api) => {
      const { items } = await api.list<PurchaseView>("/purchases", { ref, kind: "purchase" }, 1);
      const { id, item } = requireBought(ref, items[0]);
      return {
        path: `/purchases/${encodeURIComponent(id)}/move`,
        body: { person },
        question: `Move the purchase of ${item} to ${person}?`,
        undone: "Nothing was moved",
        line: `relay receipts move ${ref} ${person} --yes`,
      };
    });
    if (made === null) return;
    const { moved, receipt, plan } = made;
    io.inform(
      moved ? `${receipt.item} belongs to ${receipt.personEmail ?? receipt.person} now.` : plan.message,
    );
  },
};
