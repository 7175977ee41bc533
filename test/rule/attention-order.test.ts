/** The order of open problems: current failures with the largest share come first. */
import { expect, test } from "bun:test";
import { orderAttention } from "../../src/insight/overview/attention-order.ts";

type Need = Parameters<typeof orderAttention>[0][number];
const need = (code: string, target: string, dead: object | null = null): Need => {
  const relay = target.startsWith("relay:") ? target.slice("relay:".length) : null;
  return { code, target, relay, dead } as Need;
};
const died = (relay: string, events: number, stands: "yes" | "no" | "unknown") =>
  need("relay_failed", `relay:${relay}`, { events, cause: { stands } });

const HELD = need("environment_held", "environment");
const APPROVAL = need("approval_waiting", "approval:apr_1");
const BACKUP = need("backup_missing", "server");
const REFUND = died("refunds", 1, "unknown");
const CHECKOUT = need("sender_domain_required", "relay:checkout");
const REFUSING = need("relay_refusing", "relay:crm");
const SILENT = need("relay_silent", "relay:quiet");
const EVERYWHERE = need("mail_failing", "environment");
const OVER = died("stock", 900, "no");
const OLD = died("old", 40, "yes");

const NONE = { done: 0, waiting: 0, failed: 0, dead: 0 };
const relays = new Map([
  ["checkout", { ...NONE, waiting: 20, failed: 2 }],
  ["refunds", { ...NONE, done: 80, dead: 1 }],
  ["stock", { ...NONE, dead: 900 }],
  ["quiet", { ...NONE, done: 5_000 }],
]);
const refused = new Map([["crm", 7]]);

const ROWS: [rule: string, needs: Need[], ordered: Need[]][] = [
  ["a relay whose mails all fail comes before one dead refund", [REFUND, CHECKOUT], [CHECKOUT, REFUND]],
  ["rejected requests count as much as events", [REFUND, REFUSING], [REFUSING, REFUND]],
  ["dead events from before the last day count if their cause is still open", [CHECKOUT, OLD], [OLD, CHECKOUT]],
  ["completed events do not count", [SILENT, REFUND], [REFUND, SILENT]],
  ["a past problem of any size comes after all current ones", [OVER, REFUND, SILENT], [REFUND, SILENT, OVER]],
  ["a problem of no single relay counts all relays together", [REFUSING, CHECKOUT, EVERYWHERE], [EVERYWHERE, CHECKOUT, REFUSING]],
  ["a hold comes first", [CHECKOUT, HELD], [HELD, CHECKOUT]],
  ["an approval comes after current failures and before past ones", [APPROVAL, OVER, SILENT], [SILENT, APPROVAL, OVER]],
  ["a missing backup comes last", [BACKUP, OVER, REFUND], [REFUND, OVER, BACKUP]],
  ["problems of equal weight keep their order", [SILENT, need("relay_silent", "relay:other")], [SILENT, need("relay_silent", "relay:other")]],
];
test.each(ROWS)("%s", (_, needs, ordered) => {
  const before = [...needs];
  expect(orderAttention(needs, { relays }, refused)).toEqual(ordered);
  expect(needs).toEqual(before);
});
