/** Tests the People page: an email address leads to why a customer paid and got nothing, and manual changes can be undone. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { CAROL, stageCarol } from "../kit/staged-person.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
const toast = page.locator(".toast");

test("without people, the page says what creates a person", async () => {
  await page.goto(at("people"));
  await page.getByRole("heading", { name: "No people yet" }).waitFor();
  await page.getByText("first names an address").waitFor();
});

test("a customer who paid and got nothing: from the address to the cause and the replay in three steps", async () => {
  await stageCarol(running);
  await page.goto(at("home"));
  await page.getByRole("link", { name: "People" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.getByRole("searchbox", { name: "Address, id, store token or customer ID" }).fill("carol@");
  await page.getByRole("link", { name: CAROL }).click();
  await page.getByRole("heading", { name: CAROL }).waitFor();
  const wrong = page.getByRole("region", { name: "Failed events" });
  await wrong.getByText("product unknown").waitFor();
  await wrong.getByText("person not found").waitFor();
  const story = page.getByRole("region", { name: "Timeline" });
  await story.getByText(/names chair, which is not a product in this environment/).waitFor();
  await story.getByRole("link", { name: "Show cause and replay" }).click();
  await page.getByRole("heading", { name: /event/ }).first().waitFor();
  await page.getByRole("button", { name: /Replay/ }).waitFor();
  await page.goBack();
  await story.waitFor();
});

test("a person's access shows its sources as links", async () => {
  const now = page.getByRole("region", { name: "Current access" });
  await now.getByText("Has access").waitFor();
  await now.getByText("380").waitFor();
  await now.getByRole("link", { name: "shop" }).first().waitFor();
  await now.getByRole("link", { name: "event" }).first().waitFor();
});

test("manual access is listed and can be undone", async () => {
  await page.getByRole("button", { name: "Grant access…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "What" }).selectOption("access:beta");
  await dialog.getByRole("textbox", { name: "Reason" }).fill("a trial");
  await dialog.getByRole("button", { name: "Grant" }).click();
  await toast.getByText("has access to access:beta").waitFor();
  const now = page.getByRole("region", { name: "Current access" });
  await now.getByText("access:beta").waitFor();
  await toast.getByRole("button", { name: "Undo" }).click();
  await now.getByText("access:beta").waitFor({ state: "detached" });
  await page
    .getByRole("region", { name: "Timeline" })
    .getByText(/access:beta ended: taken back/)
    .waitFor();
});

test("a customer ID is linked and removed, and the removal can be undone", async () => {
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "Customer IDs" }) });
  await card.getByText("None. Events that name only").waitFor();
  await card.getByRole("button", { name: "Link a customer ID…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Receiver of the provider" }).selectOption("shop");
  await dialog.getByRole("textbox", { name: "Customer ID" }).fill(" cus_NffrFeUfNV2Hib ");
  await shoot(page, "link-customer");
  await dialog.getByRole("button", { name: "Link", exact: true }).click();
  await toast.getByText("Customer ID linked.").waitFor();
  await card.getByText("cus_NffrFeUfNV2Hib").waitFor();
  await shoot(page, "customers", { fullPage: true });
  await card.getByRole("button", { name: "Remove the customer ID cus_NffrFeUfNV2Hib of shop" }).click();
  await card.getByText("None. Events that name only").waitFor();
  await toast.getByRole("button", { name: "Undo" }).click();
  await card.getByText("of shop").waitFor();
  await page
    .getByRole("region", { name: "Timeline" })
    .getByText(/A customer ID was removed/)
    .waitFor();
});

test("access ends at a day and a time of 24 hours, in the zone that the page names", async () => {
  await page.getByRole("button", { name: "Grant access…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "What" }).selectOption("access:beta");
  await dialog.getByRole("radio", { name: "Expires at a time" }).check();
  await dialog.locator("input[name=day]").fill("2030-01-02");
  await dialog.locator("input[name=clock]").fill("6:30 PM");
  expect(await dialog.locator("input[name=clock]").evaluate((field: HTMLInputElement) => field.validity.patternMismatch)).toBe(true);
  await dialog.locator("input[name=clock]").fill("18:30");
  await shoot(page, "grant");
  await dialog.getByRole("button", { name: "Grant" }).click();
  await toast.getByText("has access to access:beta").waitFor();
  expect(await running.rows("SELECT expires_at FROM access_grant WHERE entitlement = 'access:beta' AND revoked_at IS NULL")).toEqual([
    { expires_at: new Date("2030-01-02T18:30").getTime() },
  ]);
  await toast.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("region", { name: "Current access" }).getByText("access:beta").waitFor({ state: "detached" });
});

test("credits beyond the balance cannot be spent, and the error appears at the field", async () => {
  await page.getByRole("button", { name: "Credits…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("radio", { name: "Spend" }).check();
  await dialog.getByRole("spinbutton", { name: "Amount" }).fill("1000");
  await dialog.getByRole("textbox", { name: "Reason" }).fill("too much");
  await dialog.getByRole("button", { name: "Spend" }).click();
  await dialog.getByText(/has 380 credits, fewer than the 1000/).waitFor();
  await dialog.getByRole("spinbutton", { name: "Amount" }).fill("80");
  await dialog.getByRole("button", { name: "Spend" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Current access" }).getByText("300", { exact: true }).waitFor();
});

test("attributes change by name: errors appear at the field, and concurrent changes by others stay", async () => {
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "Attributes" }) });
  await card.getByText("pays by invoice").waitFor();
  await card.getByRole("button", { name: "Edit attributes…" }).click();
  const dialog = page.getByRole("dialog");
  const field = dialog.getByRole("textbox", { name: "Attributes" });
  const save = dialog.getByRole("button", { name: "Save" });
  for (const [typed, words] of [
    ["{ no", "This is not JSON"],
    ["[1]", "This is not a JSON object"],
    ['{"team":"a\\u0007b"}', "attributes.team"],
  ] as const) {
    await field.fill(typed);
    await save.click();
    await dialog.locator(".field-problem").getByText(words).waitFor();
    expect(await field.getAttribute("aria-invalid")).toBe("true");
  }
  await field.fill('{"team":"red","big":12345678901234567890}');
  await save.click();
  await dialog.waitFor({ state: "detached" });
  await card.getByText("12345678901234567890").waitFor();
  const path = `/persons/${new URL(page.url()).pathname.split("/").at(-1)}`;
  await card.getByRole("button", { name: "Edit attributes…" }).click();
  await running.api("PATCH", path, { attributes: { elsewhere: 1 } }, "local");
  await field.fill('{"team":"blue"}');
  await save.click();
  await dialog.waitFor({ state: "detached" });
  expect((await running.api("GET", path, undefined, "local")).body.person.attributes).toEqual({ team: "blue", elsewhere: 1 });
  await card.getByText("elsewhere").waitFor();
  await card.getByRole("button", { name: "Edit attributes…" }).click();
  await field.fill("");
  await save.click();
  await card.getByText("None. Your app can store any JSON here").waitFor();
});

test("a suspended person is marked on the page, and Undo reactivates them", async () => {
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByText("the person cannot use any access").waitFor();
  await toast.last().getByRole("button", { name: "Undo" }).click();
  await page.getByText("the person cannot use any access").waitFor({ state: "detached" });
});

test("an unknown address shows what would create the person, and its events", async () => {
  await page.goto(at("people/dave@example.com"));
  await page.getByRole("heading", { name: "No person has this address" }).waitFor();
  await page.getByText("No event of the last 30 days contains it").waitFor();
  await page.getByRole("button", { name: "Add a person…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
  await page.getByRole("heading", { name: "dave@example.com" }).waitFor();
});

test("an erasure asks for the address, and leaves the page", async () => {
  await page.getByRole("button", { name: "Erase…" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByRole("button", { name: "Erase permanently" }).isDisabled()).toBe(true);
  await dialog.getByRole("textbox", { name: "Type the email address to confirm" }).fill("dave@example.com");
  await dialog.getByRole("button", { name: "Erase permanently" }).click();
  await page.waitForURL(/\/people$/);
  await toast.getByText("Person erased.").waitFor();
  await page.getByRole("link", { name: CAROL }).waitFor();
  expect(await page.getByRole("link", { name: "dave@example.com" }).count()).toBe(0);
});

test("two people with one address in two spellings link to each other, and the page says who keeps what before an erasure", async () => {
  const invite = async (email: string): Promise<string> => (await running.api("POST", "/persons", { email }, "local")).body.person.id;
  const [first, second] = [await invite("zoe@before.example"), await invite("zoe@bücher.example")];
  const sql = "UPDATE person SET email = 'zoe@xn--bcher-kva.example', email_key = 'zoe@xn--bcher-kva.example' WHERE id = ?1";
  await running.service.store.write("app", (tx) => tx.run(sql, first));
  await page.goto(at(`people/${first}`));
  await page.getByRole("button", { name: "Erase…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Erase that person too if they asked to be forgotten").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: second }).click();
  await page.getByRole("heading", { name: "zoe@bücher.example" }).waitFor();
  await page.getByRole("link", { name: first }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
