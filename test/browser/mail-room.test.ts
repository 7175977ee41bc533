/** The mail room: a test mail, sending again what may not have left, and allowing event mail again. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { intendEmail } from "../../src/mail/email.ts";
import { setMailStop } from "../../src/mail/mail-stop.ts";
import { invitePerson } from "../../src/people/person-invite.ts";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
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
    const id = await intendEmail(tx, {
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

test("a mail whose end is unknown is found by its state and sent again, once a person has said so", async () => {
  await page.getByRole("combobox", { name: "State" }).selectOption("unknown");
  await page.getByText("Thank you").click();
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByText("ada@example.com gets it twice").waitFor();
  await page.getByRole("button", { name: "Send again", exact: true }).click();
  await page.getByText("The mail to ada@example.com was kept here.").waitFor();
  await page.getByRole("heading", { name: "No such mail" }).waitFor();
  expect(await running.rows("SELECT state FROM email")).toEqual([{ state: "mailbox" }]);
});

test("a test mail is sent with one button, and is in the list", async () => {
  await page.getByRole("combobox", { name: "State" }).selectOption("");
  await page.getByRole("button", { name: "Send me a test mail" }).click();
  await page.getByText("Test mail", { exact: true }).waitFor();
  expect(await running.rows("SELECT state FROM email WHERE subject = 'Test mail'")).toEqual([{ state: "mailbox" }]);
});

test("who stopped event mail is shown, and is allowed it again with one button", async () => {
  const stopped = page.getByRole("region", { name: "No event mail" });
  await stopped.getByText("bea@example.com").waitFor();
  await stopped.getByRole("button", { name: "Allow again" }).click();
  await stopped.waitFor({ state: "detached" });
  expect(await running.rows("SELECT 1 FROM mail_stop")).toEqual([]);
});

test("nothing of all this was refused by the page's policy or broke in its console", () => {
  expect(complaints).toEqual([]);
});
