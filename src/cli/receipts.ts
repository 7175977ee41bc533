/**
 * `relay receipts …`: what was paid, and taking back what a payment of the app's own processor gave, as Refund… on the dashboard's Selling page
 * does it. It moves no money, and what a relay fulfilled a relay refunds.
 */
import { actorWords, COMMAND_LINE } from "../account/api-key.ts";
import { writeJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import { readPersonId } from "../people/person.ts";
import { listPurchases, type PurchaseView, RECEIPT_KINDS } from "../selling/purchase.ts";
import { recordReceipt } from "../selling/receipt.ts";
import { sayAmount } from "../story/words.ts";
import { type Command, CommandFailure, type Input } from "./command.ts";
import { requireSame, requireYes } from "./confirmed.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { LIMIT, SINCE } from "./listing.ts";
import { ANYWHERE, atPlace, type HereOf, listAtPlace } from "./place.ts";
import { askPlace, listRemote } from "./remote.ts";
import { sayList } from "./terminal.ts";
import type { World } from "./world.ts";

export const receiptsList: Command = {
  words: ["receipts", "list"],
  summary: "list receipts and refunds, newest first",
  options: [
    {
      name: "person",
      value: "<address, id or token>",
      help: "only this person's; somebody unknown is an error",
    },
    { name: "ref", value: "<ref>", help: "the receipt under this ref, with its refund" },
    { name: "kind", value: "<kind>", help: "purchase, refund or confirmation", of: RECEIPT_KINDS },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay receipts list --person ada@example.com", "relay receipts list --ref pay_7"],
  async run(input, world) {
    const kind = input.choice("kind", RECEIPT_KINDS) ?? undefined;
    const [named, ref] = [input.text("person") ?? undefined, input.text("ref") ?? undefined];
    const here: HereOf<PurchaseView> = async (tx, id, part) => {
      const person = await readPersonId(tx, id, "--person", named);
      return await listPurchases(tx, id, part, { kind, ref, person });
    };
    const time = { of: (one: PurchaseView) => one.createdAt, ordered: true };
    const receipts = await listAtPlace(input, world, "/purchases", { kind, ref, person: named }, here, time);
    await sayList(input, world, receipts, {
      columns: [
        { heading: "AT", value: (one) => one.createdAt, keep: 4 },
        { heading: "STATE", value: stateOf, tone: true, keep: 2 },
        { heading: "ITEM", value: (one) => one.item, cut: 12, keep: 3 },
        {
          heading: "AMOUNT",
          value: (one) => sayAmount(one.amountMinor, one.currency) ?? "",
          right: true,
          keep: 5,
        },
        { heading: "ADDRESS", value: (one) => one.personEmail ?? "(erased)", cut: 16, keep: 6, raw: true },
        { heading: "FROM", value: (one) => one.relay ?? one.origin, cut: 10, keep: 7 },
        { heading: "REF", value: (one) => one.ref, cut: 20, keep: 1, raw: true },
      ],
      none: "No receipt matches.",
    });
  },
};

function stateOf({ kind, refundedBy }: PurchaseView): string {
  if (kind !== "purchase") return kind;
  return refundedBy === null ? "paid" : "refunded";
}

interface Refunded {
  /** The refund's, or the receipt's where it was taken back before. */
  receipt: PurchaseView;
  created: boolean;
}

export const receiptsRefund: Command = {
  words: ["receipts", "refund"],
  summary: "take back what a payment gave; moves no money",
  details:
    "The entitlement and the credits that the product gave end, and a refund is written beside the receipt. The money is refunded at your processor. What a relay fulfilled a relay refunds, and a plan is ended: relay people end.",
  arguments: [{ name: "ref", help: "the payment's, as relay receipts list shows it" }],
  options: [
    {
      name: "confirm",
      value: "<ref>",
      help: "the ref once more, which takes back without asking; without it a terminal is asked",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay receipts refund pay_7 --confirm pay_7"],
  async run(input, world) {
    const ref = input.first();
    requireSame(input, "ref", ref);
    const made = await atPlace<Refunded>(input, world, {
      writes: true,
      here: async (store, { id: environmentId }) => {
        const page = { limit: 1, after: null };
        const { items } = await store.read((tx) =>
          listPurchases(tx, environmentId, page, { ref, kind: "purchase" }),
        );
        const bought = requireRefundable(ref, items[0]);
        if (bought.refundedBy !== null) return { receipt: bought, created: false };
        await askFirst(input, world, bought);
        const change = { environmentId, by: actorWords(COMMAND_LINE), nowMs: world.clock.now() };
        return await recordReceipt(store, change, refundOf(bought));
      },
      there: async (remote) => {
        const { items } = await listRemote<PurchaseView>(remote, "/purchases", { ref, kind: "purchase" }, 1);
        const bought = requireRefundable(ref, items[0]);
        if (bought.refundedBy !== null) return { receipt: bought, created: false };
        await askFirst(input, world, bought);
        return await askPlace<Refunded>(remote, "POST", "/receipts", refundOf(bought));
      },
    });
    if (input.on("json")) world.say(writeJson(made, 2));
    const { receipt, created } = made;
    world.tell(
      created
        ? `What ${receipt.item} gave ${whose(receipt)} is taken back, and a refund stands beside its receipt. No money moved: refund the payment at your processor.`
        : `What ${receipt.item} gave ${whose(receipt)} was taken back already: nothing changed.`,
    );
  },
};

function refundOf({ ref, person, item }: PurchaseView) {
  return { kind: "refund", ref, person, product: item } as const;
}

function whose({ personEmail, person }: PurchaseView): string {
  return personEmail ?? person;
}

/** Refuses what the dashboard shows without its button. */
function requireRefundable(ref: string, bought: PurchaseView | undefined): PurchaseView {
  if (bought === undefined)
    throw new Refusal(
      "not_found",
      `No payment is recorded under ${JSON.stringify(ref)}: relay receipts list shows the refs.`,
    );
  const { relay, item, itemKind } = bought;
  if (relay !== null)
    throw new CommandFailure(
      "invalid_input",
      `${ref} was fulfilled by the relay ${relay}, and what a relay fulfilled a relay refunds, as its sender's refund arrives. To take the access back by hand: relay people end.`,
    );
  if (itemKind === "plan")
    throw new CommandFailure(
      "invalid_input",
      `${ref} paid the plan ${item}, which is ended instead: relay people end ${whose(bought)} ${item}.`,
    );
  return bought;
}

async function askFirst(input: Input, world: World, bought: PurchaseView): Promise<void> {
  if (input.given("confirm")) return;
  const { ref, item } = bought;
  world.tell(
    `The entitlement and the credits that ${item} gave ${whose(bought)} (${ref}) would end, and a refund stand beside the receipt. No money moves.`,
  );
  await requireYes(world, {
    question: `Take back what ${item} gave?`,
    undone: "Nothing was taken back",
    line: `relay receipts refund ${ref} --confirm ${ref}`,
  });
}
