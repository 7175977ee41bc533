/** Commands in the service's sentences link to the dashboard page that does the same. */
import { expect, test } from "bun:test";
import { NAMED_COMMAND } from "../../src/base/shared/named-command.ts";
import { pageOfCommand } from "../../web/component/command-page.ts";
import { readSources } from "../house/source-tree.ts";

const SHOP = "/apps/shop/production";
const LEADS: [command: string, words: string, path: string, button: string | null][] = [
  ["relay requests list --relay orders", "Requests › orders", "/requests?relay=orders", null],
  ["relay requests list", "Requests", "/requests", null],
  ["relay events list --relay orders --state failed", "Events › orders, failed", "/events?relay=orders&state=failed", null],
  ["relay events list --relay orders --reason any", "Events › orders, failed", "/events?relay=orders&reason=any", null],
  ["relay events show evt_0123456789abcdef", "Events › …abcdef", "/events/evt_0123456789abcdef", null],
  ["relay events replay", "Events", "/events", "Replay…"],
  ["relay events show <id>", "Events", "/events", null],
  ["relay relays resume orders", "Relays › orders", "/relays/orders", "Resume"],
  ["relay relays resume", "Relays", "/relays", "Resume"],
  ["relay relays rotate-secret <name> --signing", "Relays", "/relays", null],
  ["relay settings set held off", "Settings", "/settings", "Release the hold"],
  ["relay settings set mail.smtp", "Mail › Mail server", "/mail?tab=server", null],
  ["relay settings set alerts.mail off", "Alerts › Alert settings", "/alerts?tab=switches", null],
  ["relay settings set processorSecret", "Settings", "/settings", null],
  ["relay alerts test-channel Ops", "Alerts › Channels", "/alerts?tab=channels", "Send a test"],
  ["relay domain verify", "Mail › Sender domain", "/mail?tab=domain", "Check again"],
  ["relay emails list --state unknown", "Mail › unknown", "/mail?state=unknown", null],
  ["relay catalog set collection", "Records", "/records", null],
  ["relay catalog list plans", "Catalog › Plans", "/catalog?tab=plans", null],
  ["relay people show <address>", "People", "/people", null],
  ["relay people show ann@example.com", "People › ann@example.com", "/people?q=ann%40example.com", null],
  ["relay people activate per_0123456789abcdef", "People › …abcdef", "/people/per_0123456789abcdef", "Activate"],
  ["relay people set ann@example.com", "People › ann@example.com", "/people?q=ann%40example.com", null],
  ["relay people invite", "People", "/people", "Add a person…"],
  ["relay emails stopped", "Mail › Unsubscribed", "/mail?tab=stops", null],
  ["relay domain remove", "Mail › Sender domain", "/mail?tab=domain", "Remove…"],
  ["relay relays delete orders", "Relays › orders", "/relays/orders", "Delete…"],
  ["relay files delete", "Records › Files", "/records?tab=files", "Delete…"],
  ["relay files list", "Records › Files", "/records?tab=files", null],
  ["relay receipts record pay_7", "Catalog › Receipts", "/catalog?tab=receipts", "Record a payment…"],
  ["relay receipts refund pay_7", "Catalog › Receipts", "/catalog?tab=receipts", "Refund…"],
  ["relay records show orders 7c44d0b1", "Records › orders", "/records/orders", null],
  ["relay backup", "Settings › Backups", "/settings?tab=backups", "Back up now"],
];
test.each(LEADS)("%s leads to %s", (command, words, path, button) => {
  expect(pageOfCommand(command, `${SHOP}/home`)).toEqual({ words, href: SHOP + path, button, needs: expect.any(String) });
});

const BUTTONS: readonly (readonly [command: string, needs: string])[] = [
  ["relay settings set held off", "edit_settings"],
  ["relay domain verify", "edit_settings"],
  ["relay alerts resolve", "replay"],
  ["relay alerts test-channel Ops", "edit_settings"],
  ["relay emails resend", "replay"],
  ["relay events replay", "replay"],
  ["relay relays retry orders", "replay"],
  ["relay relays delete orders", "edit_definitions"],
  ["relay import-missed orders", "edit_definitions"],
  ["relay files delete", "edit_records"],
  ["relay people invite", "act_on_people"],
  ["relay receipts refund pay_7", "act_on_people"],
  ["relay backup", "manage_server"],
];
test.each(BUTTONS)("the button of %s needs the permission %s", (command, needs) => {
  expect(pageOfCommand(command, `${SHOP}/home`)).toMatchObject({ button: expect.any(String), needs });
});

test("a command without a relay's name links to the relay of its page", () => {
  expect(pageOfCommand("relay relays set-secret", `${SHOP}/relays/orders`)?.href).toBe(`${SHOP}/relays/orders?tab=secrets`);
});

test("a command links to another environment that it names, and a name stays one part of the path", () => {
  expect(pageOfCommand("relay events list --environment development", `${SHOP}/home`)?.href).toBe("/apps/shop/development/events");
  expect(pageOfCommand("relay relays show ../../x", `${SHOP}/home`)?.href).toBe(`${SHOP}/relays/..%2F..%2Fx`);
});

test("a command that needs a terminal has no link, and no command has one outside an environment", () => {
  for (const command of ["relay serve --backup-every 1d", "relay send orders", "relay doctor", "relay admin reset", "relay restore <file>"])
    expect(pageOfCommand(command, `${SHOP}/home`)).toBeNull();
  expect(pageOfCommand("relay requests list", "/approvals/apr_1")).toBeNull();
});

/** The commands that only a terminal can run, as the pages' sentences name them. */
const ONLY_THERE = [
  ...[
    "relay admin create",
    "relay admin reset",
    "relay apps list",
    "relay changes",
    "relay dev",
    "relay doctor",
    "relay login",
    "relay oidc passwords",
    "relay promote",
    "relay pull",
    "relay relays cases",
    "relay restore",
    "relay send value",
  ],
  ...[
    "relay serve",
    "relay serve --backup-every",
    "relay sync",
    "relay sync --live",
    "relay sync --prune",
    "relay upgrade --check",
    "relay validate",
  ],
];

test("every other command in the service's sentences has its page", () => {
  const named = readSources("src")
    .filter(({ path }) => /\/(base|health|event|action|selling|mail|audit|watch|overview|receiver|maintenance|caretaker)\//.test(path))
    .flatMap(({ text }) => text.replaceAll(/\$\{[^{}]*\}/g, "value").match(new RegExp(NAMED_COMMAND, "g")) ?? []);
  const without = [...new Set(named.filter((one) => pageOfCommand(one, `${SHOP}/home`) === null).map((one) => one.split(" ").slice(0, 3).join(" ")))];
  expect(named.length).toBeGreaterThan(60);
  expect(without.sort()).toEqual(ONLY_THERE);
});
