/** relay emails on a data directory: the result of each mail, a resend, and a test of the settings. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordIntendedEmail } from "../../src/platform/mail/email.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-mail-"));
afterAll(() => rmSync(cwd, { recursive: true }));
const run = (line: string): Promise<CommandResult> => runCommand(line.split(" "), { cwd });
let id: string;

beforeAll(async () => {
  expect((await run("apps create Shop --id app_test")).code).toBe(0);
  const store = await openSqlite(join(cwd, ".relay", "relay.db"), { clock: new VirtualClock(0) });
  id = await store.write("app", async (tx) => {
    const environment = await tx.get<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
    const environmentId = environment?.id ?? 0;
    const invite = { environmentId, email: "ada@example.com", createdBy: "test", nowMs: 0, invitesPerDay: 9 };
    const { person } = await invitePerson(tx, invite);
    const made = await recordIntendedEmail(tx, {
      environmentId,
      personId: person.id,
      recipient: person.email,
      sender: "event@shop.example",
      kind: "event",
      subject: "Thank you",
      text: "Text",
      relayName: "orders",
      eventId: null,
      nowMs: 0,
    });
    await tx.run("UPDATE email SET state = 'unknown', left_at = 1 WHERE id = ?1", made);
    return made;
  });
  await store.close();
});

describe("relay emails", () => {
  test("list shows the result of each mail, and filters by state", async () => {
    const { code, said } = await run("emails list --state unknown");
    expect([code, said.split("\n")]).toEqual([0, [expect.stringContaining("STATE"), expect.stringContaining(id)]]);
    expect(await run("emails list --state sent")).toMatchObject({ said: "", told: "No mail matches." });
    expect(JSON.parse((await run("emails list --json")).said).items).toMatchObject([{ id, state: "unknown" }]);
  });

  test("list filters by a person's address, and reports an unknown person", async () => {
    expect(JSON.parse((await run("emails list --person ADA@example.com --json")).said).items).toMatchObject([{ id }]);
    expect((await run("people show ada@example.com")).code).toBe(0);
    const other = await run("emails list --person eve@example.com");
    expect([other.code, other.told]).toEqual([1, expect.stringContaining("eve@example.com")]);
  });

  test.each([
    ["send-again without a verified sender domain", () => `emails resend ${id}`, "verified sender domain"],
    [
      "send-again of a mail that does not exist",
      () => "emails resend eml_none",
      "There is no mail eml_none in this environment: relay emails list shows the existing ones.",
    ],
    ["a test mail to an address that is no owner's", () => "emails test --to eve@example.com", "not an owner's"],
  ])("refuses %s, and changes nothing", async (_rule, line, words) => {
    const before = (await run("emails list --json")).said;
    const { code, told } = await run(line());
    expect([code, told]).toEqual([1, expect.stringContaining(words)]);
    expect((await run("emails list --json")).said).toBe(before);
  });

  test("reports a failed send with its class and exit code 1", async () => {
    const store = await openSqlite(join(cwd, ".relay", "relay.db"), { clock: new VirtualClock(0) });
    await store.write("app", (tx) =>
      tx.run(
        "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment",
      ),
    );
    await store.close();
    const { code, said } = await run(`emails resend ${id}`);
    expect([code, said]).toEqual([1, expect.stringContaining("The environment has no SMTP server")]);
    expect((await run("emails list --state unknown")).said).toContain(id);
  });
});
