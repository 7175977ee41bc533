/** Tests that a page that shows a value only once asks before the user leaves it, until the user copied the value or confirms. */
import { afterAll, expect } from "bun:test";
import type { Dialog } from "playwright-core";
import { openDashboard } from "../kit/browser.ts";
import { showJson } from "../kit/browser-editor.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, at, context, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

/** Questions that the browser asked, and the answer to the next ones. */
const asked: string[] = [];
let leaves = false;
const answer = async (dialog: Dialog): Promise<void> => {
  asked.push(dialog.type());
  if (dialog.type() === "confirm") expect(dialog.message()).toContain("only once");
  await (leaves ? dialog.accept() : dialog.dismiss());
};
page.on("dialog", (dialog) => void answer(dialog));

/** Does the act and returns the questions that it raised. */
async function questionsOf(act: () => Promise<unknown>): Promise<string[]> {
  asked.length = 0;
  await act();
  return [...asked];
}

/** Goes back within the dashboard, which loads no page, and waits until the dashboard decided. */
const goBack = () =>
  page.evaluate(async () => {
    const decided = new Promise((done) => addEventListener("popstate", () => setTimeout(done), { once: true }));
    history.back();
    await decided;
  });
const secret = page.locator("[data-secret]");
const link = (name: string) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name });

test("after a relay was created, no link, no Back and no closed tab loses its secret", async () => {
  await page.goto(at("relays"));
  await page.getByRole("link", { name: "Start from an example" }).click();
  await page.getByRole("button", { name: "Use this template" }).click();
  await showJson(page);
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
  await page.getByRole("button", { name: "Create relay" }).click();
  await secret.waitFor();
  const address = page.url();
  expect(await questionsOf(() => link("Events").click())).toEqual(["confirm"]);
  expect(await questionsOf(goBack)).toEqual(["confirm"]);
  expect(await questionsOf(goBack)).toEqual(["confirm"]);
  expect(page.url()).toBe(address);
  const closing = page.waitForEvent("dialog");
  expect(await questionsOf(() => Promise.all([closing, page.close({ runBeforeUnload: true })]))).toEqual(["beforeunload"]);
  await secret.waitFor();
});

test("the button that confirms leaves without a question", async () => {
  expect(await questionsOf(() => page.getByRole("link", { name: "I stored the secret: open relay" }).click())).toEqual([]);
  await page.getByRole("heading", { name: "order-paid" }).waitFor();
});

test("Back between two tabs of a page asks while a dialog shows a new secret, and the confirmation ends it", async () => {
  await page.getByRole("navigation", { name: "Relay" }).getByRole("link", { name: "Secrets" }).click();
  await page.getByRole("button", { name: "Rotate or paste…" }).click();
  await page.getByRole("button", { name: "Create a new secret" }).click();
  await secret.waitFor();
  expect(await questionsOf(goBack)).toEqual(["confirm"]);
  await secret.waitFor();
  expect(await questionsOf(() => page.getByRole("button", { name: "I stored the secret" }).click())).toEqual([]);
  await secret.waitFor({ state: "detached" });
  expect(await questionsOf(() => link("Events").click())).toEqual([]);
  await page.waitForURL(/\/events$/);
});

test("a copied key needs no question", async () => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(at("settings?tab=keys"));
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("server");
  await page.getByRole("button", { name: "Create key" }).click();
  await secret.waitFor();
  await page.getByRole("button", { name: "Copy Key" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await questionsOf(() => page.goBack())).toEqual([]);
  await page.waitForURL(/\/events$/);
});

test("a user who decides to leave is asked once", async () => {
  leaves = true;
  await link("Settings").click();
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("lost");
  await page.getByRole("button", { name: "Create key" }).click();
  await secret.waitFor();
  expect(await questionsOf(goBack)).toEqual(["confirm"]);
  await secret.waitFor({ state: "detached" });
  expect(await questionsOf(() => link("Events").click())).toEqual([]);
});

test("the pages log no error", () => {
  expect(complaints).toEqual([]);
});
