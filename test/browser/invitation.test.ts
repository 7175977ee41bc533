/** The invitation of a member by mail: the dialog, a mail that failed and is sent again, and the page that the link opens. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { readMailUrl } from "../../src/base/mail-url.ts";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { type MailServerOptions, startMailServer } from "../kit/mail-server.ts";

const options: MailServerOptions = { security: "none", authority: makeAuthority("invitations") };
const mails = await startMailServer(options);
const mailUrl = readMailUrl(`smtp://127.0.0.1:${mails.port}?from=relay@example.com`);
if (typeof mailUrl === "string") throw new Error(mailUrl);
const dashboard = await openDashboard({
  environments: ["development", "production"],
  config: { mode: "server", baseUrl: null, mailUrl, allowPrivate: ["127.0.0.1"] },
});
const { page, context, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const passwordHash = await hashPassword("the old password");
const token = await running.service.store.write("app", async (tx) => {
  const nowMs = systemClock.now();
  const { id } = await createOwner(tx, { email: "ann@example.com", passwordHash, nowMs });
  return (await createSession(tx, id, nowMs)).token;
});
await context.addCookies([{ name: "relay_session", value: token, url: running.service.url }]);

const told = (text: string) => page.getByRole("status").getByText(text).first().waitFor();

test("is mailed, says why a mail failed, and is sent again with a new link", async () => {
  options.refuse = { at: "recipient", code: 550, message: "no such user" };
  await page.goto(at("settings?tab=members"));
  await page.getByRole("button", { name: "Invite a member" }).click();
  await page.getByLabel("E-mail address").fill("kim@example.com");
  expect(await page.getByLabel("Mail the link to this address").isChecked()).toBe(true);
  await shoot(page, "invite-mail");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Send invitation" }).click();
  await page.getByRole("dialog").getByText("The mail server rejected the recipient's address.").waitFor();
  await shoot(page, "invite-mail-failed");
  const link = (await page.locator("[data-secret=Link]").textContent()) ?? "";
  await page.getByRole("button", { name: "I copied the link" }).click();
  await page.getByText("Mail failed").waitFor();
  await page.getByText("Check the member's address.").waitFor();
  await shoot(page, "members-mail-failed", { fullPage: true });
  expect(await findBarriers(page)).toEqual([]);
  delete options.refuse;
  await page.getByRole("button", { name: "Send again to kim@example.com" }).click();
  await told("The invitation went to kim@example.com.");
  await page.getByText("Invited by mail").waitFor();
  expect(mails.taken.map(({ to }) => to)).toEqual([["kim@example.com"]]);
  await shoot(page, "members-mailed", { fullPage: true });
  const other = await page.context().browser()?.newPage();
  if (other === undefined) throw new Error("There is no browser.");
  await other.goto(link);
  await other.getByRole("heading", { name: "This link does not work any more" }).waitFor();
  const text = mails.taken[0]?.raw.replaceAll("=\r\n", "").replaceAll("=3D", "=") ?? "";
  await other.goto(/http\S+\/reset#\S{32}/.exec(text)?.[0] ?? "");
  await other.getByRole("heading", { name: "Choose a password" }).waitFor();
  await shoot(other, "invitation-page");
  await other.close();
});

test("is not mailed if the owner wants the link", async () => {
  const before = mails.taken.length;
  await page.getByRole("button", { name: "Invite a member" }).click();
  await page.getByLabel("E-mail address").fill("lee@example.com");
  await page.getByLabel("Mail the link to this address").uncheck();
  await page.getByRole("button", { name: "Create link" }).click();
  await page.locator("[data-secret=Link]").waitFor();
  await page.getByRole("button", { name: "I copied the link" }).click();
  await page.getByText("Invited", { exact: true }).waitFor();
  expect(mails.taken).toHaveLength(before);
  expect(complaints).toEqual([]);
});
