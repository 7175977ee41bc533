/** A code that tells an owner to change something outside the definition names a command. The dashboard turns it into a button. */
import { expect, test } from "bun:test";
import { listMeanings } from "../../src/base/code/code.ts";
import { pageOfCommand } from "../../web/component/command-page.ts";

const COMMANDS: [code: string, command: string][] = [
  ["person_suspended", "relay people activate"],
  ["sale_suspended", "relay people activate"],
  ["person_not_found", "relay people invite"],
  ["relay_nobody", "relay people invite"],
  ["sale_nobody", "relay people add-token"],
  ["token_taken", "relay people remove-token"],
  ["credits_short", "relay people credits"],
  ["key_in_use", "relay people end"],
  ["billed_by_processor", "relay people end"],
  ["purchase_not_by_relay", "relay receipts refund"],
  ["ref_used", "relay receipts list"],
  ["collection_missing", "relay catalog set collection"],
  ["product_unknown", "relay catalog set product"],
  ["plan_unknown", "relay catalog set plan"],
  ["product_not_sold_here", "relay catalog set product"],
  ["plan_not_sold_here", "relay catalog set plan"],
  ["storage_capped", "relay files delete"],
  ["writes_capped", "relay people suspend"],
  ["relay_silent", "relay relays delete"],
  ["relay_capped", "relay relays delete"],
  ["mail_unsubscribed", "relay people allow-mail"],
  ["environment_held", "relay settings set held off"],
  ["relay_failed", "relay events replay"],
];
test.each(COMMANDS)("%s names %s, and the dashboard has a page for it", (code, command) => {
  expect(listMeanings(code).some(({ todo }) => todo.includes(command))).toBe(true);
  expect(pageOfCommand(command, "/apps/shop/production/home")).not.toBeNull();
});
