/** Tests the Mail page: a test mail, a resend of a mail with an unknown result, and a person who gets event mail again. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { recordIntendedEmail } from "../../src/platform/mail/email.ts";
import { setMailStop } from "../../src/platform/mail/mail-stop.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { openDashboard } from "../kit/browser.ts";

/** Holds the DNS records of the domain. */
let records: string[] = [];
const dashboard = await openDashboard({ ports: { resolveTxt: async () => records } });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
  const environmentId = environment?.id ?? 0;
  const nowMs = running.clock.now();
  await running.service.store.write("app", async (tx) => {
    const invite = { environmentId, createdBy: "test", nowMs, invitesPerDay: 9 };
    const { person } = await invitePerson(tx, { ...invite, email: "ada@example.com" });
    const { person: other } = await invitePerson(tx, { ...invite, email: "bea@example.com" });
    const id = await recordIntendedEmail(tx, {
      environmentId,
      personId: person.id,
      recipient: person.email,
      sender: "event@localhost",
      kind: "event",
      subject: "Thank you",
      text: "Your order is on its way.",
      relayName: "orders",
      eventId: null,
      nowMs,
    });
    await tx.run("UPDATE email SET state = 'unknown', left_at = 1 WHERE id = ?1", id);
    await setMailStop(tx, { environmentId, by: "test", nowMs }, { personId: other.id, stopped: true });
  });
  await page.goto(at("mail"));
});

const tab = (name: string) => page.getByRole("navigation", { name: "Mail" }).getByRole("link", { name });

test("a mail with an unknown result is found by its state, and resent after a confirmation", async () => {
  await page.getByRole("combobox", { name: "State" }).selectOption("unknown");
  await page.getByText("Thank you").click();
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByText("ada@example.com gets it twice").waitFor();
  await page.getByRole("button", { name: "Send again", exact: true }).click();
  await page.getByText("The mail to ada@example.com was stored in the mailbox.").waitFor();
  await page.getByRole("heading", { name: "No mail matches" }).waitFor();
  expect(await running.rows("SELECT state FROM email")).toEqual([{ state: "mailbox" }]);
});

test("the list shows why a mail was not sent", async () => {
  const set = (state: string, message: string | null) =>
    running.service.store.write("app", (tx) => tx.run("UPDATE email SET state = ?1, message = ?2", state, message));
  await set("failed", "The mail server did not answer.");
  await page.goto(at("mail"));
  await page
    .getByRole("row", { name: /Thank you/ })
    .getByText("The mail server did not answer.")
    .waitFor();
  await set("mailbox", null);
});

test("one button sends a test mail, and the list shows it", async () => {
  await page.getByRole("combobox", { name: "State" }).selectOption("");
  await page.getByRole("button", { name: "Send a test mail" }).click();
  await page.getByText("Test mail", { exact: true }).waitFor();
  expect(await running.rows("SELECT state FROM email WHERE subject = 'Test mail'")).toEqual([{ state: "mailbox" }]);
});

test("an unsubscribed person is listed, and one button reverts it", async () => {
  await tab("Unsubscribed").click();
  const stopped = page.getByRole("region", { name: "Event mail off" });
  await stopped.getByRole("link", { name: "bea@example.com" }).waitFor();
  await stopped.getByRole("button", { name: "Allow event mail" }).click();
  await stopped.waitFor({ state: "detached" });
  expect(await running.rows("SELECT 1 FROM mail_stop")).toEqual([]);
});

test("a sender domain shows its DNS record to copy, and is verified once the record exists", async () => {
  await tab("Sender domain").click();
  await page.waitForURL(/tab=domain/);
  await page.getByRole("textbox", { name: "Domain" }).fill("nonsense");
  await page.getByRole("button", { name: "Set domain" }).click();
  await page.getByRole("alert").getByText("is not a domain").waitFor();
  await page.getByRole("textbox", { name: "Domain" }).fill("shop.example");
  await page.getByRole("button", { name: "Set domain" }).click();
  await page.getByText("Not verified yet").waitFor();
  await page.getByText("_relay-service.shop.example", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Check again" }).click();
  await page.getByText("does not have the expected value yet").waitFor();
  records = [(await page.getByText(/^relay-service-verification=/).textContent()) ?? ""];
  await page.getByRole("button", { name: "Check again" }).click();
  await page.getByText("Verified", { exact: true }).waitFor();
});

test("a mail server is rejected with its reason, then saved without showing the password again, and a test mail shows its result", async () => {
  await tab("Mail server").click();
  const server = page.getByRole("region", { name: "Mail server (SMTP)" });
  await server.getByLabel("Host").fill("smtp.example.com");
  await server.getByLabel("User name").fill("me");
  await server.getByRole("button", { name: "Save mail server" }).click();
  await server.getByRole("alert").getByText("go together").waitFor();
  await server.getByLabel("Password").fill("mail-password-77");
  await server.getByRole("button", { name: "Save mail server" }).click();
  await server.getByText("Password set").waitFor();
  expect(await server.getByLabel("Password").inputValue()).toBe("");
  expect(await page.content()).not.toContain("mail-password-77");
  await page.getByRole("checkbox", { name: "Relays send mail" }).click();
  await page.getByText("Mail from relays is off.").waitFor();
  const proof = page.getByRole("region", { name: "Test", exact: true });
  await proof.getByRole("button", { name: "Send a test mail" }).click();
  await proof.getByText("Sending mail is turned off in the settings").waitFor();
  await page.getByRole("checkbox", { name: "Relays send mail" }).click();
  await page.getByText("Mail from relays is on.").waitFor();
  await proof.getByRole("button", { name: "Send a test mail" }).click();
  await proof.getByText("was stored in the mailbox").waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
