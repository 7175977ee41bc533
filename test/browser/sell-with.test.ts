/** Tests "Sell with …": a seller names a product and plans, sees every relay, saves them together, and the checklist ticks with the first sale. */
import { afterAll, expect } from "bun:test";
import { KIT_NAMES } from "../../src/rules/senders/kit-definitions.ts";
import { playLife } from "../../src/rules/senders/kit-life.ts";
import { findKit } from "../../src/rules/senders/kit-registry.ts";
import { openDashboard } from "../kit/browser.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { SIGNERS } from "../kit/sender-signer.ts";

const test = dependentSteps();
const dashboard = await openDashboard({ environments: ["development", "production"] });
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const SOURCE = "lemon-squeezy";
const kit = page.getByRole("region", { name: "Preview of Lemon Squeezy" });
let secret = "";

test("the page of a new relay offers the kits first, and the seller sees each relay and what the provider cannot report", async () => {
  await page.goto(at("relays/new"));
  await page.getByRole("button", { name: /^Sell with Lemon Squeezy/ }).click();
  await kit.getByText("Lemon Squeezy sends no event about a dispute").waitFor();
  await kit.getByText("lemon-squeezy-purchase", { exact: true }).click();
  await kit.getByLabel("Definition of lemon-squeezy-purchase").getByText('"fulfil_product"').waitFor();
  expect(new URL(page.url()).search).toBe(`?sell=${SOURCE}`);
});

test("an invalid name is refused with its rule, and cannot be saved", async () => {
  await kit.getByLabel("Name of the product").fill("My Course");
  await kit.getByText(/write 1 to 40 lowercase letters/).waitFor();
  expect(await kit.getByRole("button", { name: /^Save 6 relays/ }).isDisabled()).toBe(true);
});

test("a name of the seller appears in every relay, and a save in the middle of the typing is not possible", async () => {
  await kit.getByLabel("Name of the product").fill("atlas");
  expect(await kit.getByRole("button", { name: /^Save 6 relays/ }).isDisabled()).toBe(true);
  await kit.getByText("A paid order of atlas gives the product.").waitFor();
  await kit.getByLabel("Name of the second plan").fill("team");
  await kit.getByText("lemon-squeezy-plan-team", { exact: true }).waitFor();
});

test("a save shows the one receiver URL, the secret once, and the steps at the provider", async () => {
  await kit.getByRole("button", { name: "Save 6 relays and the catalog" }).click();
  await page.getByText("Saved 6 relays and their catalog.").waitFor();
  await page.getByText(`/hooks/app_test/${SOURCE}`).first().waitFor();
  secret = await page.locator('[data-secret="Receiver secret"]').innerText();
  await page.getByText(/Create a single-payment product with the name atlas/).waitFor();
  await page.getByRole("link", { name: `I stored the secret: open ${SOURCE}` }).click();
});

const steps = page.getByRole("region", { name: "Set it up" });

test("the checklist of the source ends with a test purchase and its refund, and each ticks when it happens", async () => {
  await steps.getByRole("heading", { name: "The first test purchase is done", exact: true }).waitFor();
  const found = findKit(SOURCE);
  const life = found?.lives.find(({ name }) => name === "refund");
  if (found === null || life === undefined) throw new Error("The kit has no life refund.");
  const names = { ...KIT_NAMES, product: "atlas", plan2: "team" };
  const played = playLife(found, life, { names, person: "ada@example.com", run: "100000000001", startMs: running.clock.now() });
  const send = async (at: number): Promise<void> => {
    for (const { body, contentType } of played[at]?.requests ?? []) {
      const url = `https://relay.example.test/hooks/app_test/${SOURCE}`;
      const signed = await SIGNERS[SOURCE]?.sign({ body, secret, nowMs: running.clock.now(), url });
      const headers = { "content-type": contentType, ...signed?.headers };
      expect((await running.hook(SOURCE, { search: "", body, ...signed, headers })).status).toBe(200);
      await running.drain();
    }
  };
  await send(0);
  await steps.getByRole("heading", { name: "The first test purchase is done (done)" }).waitFor();
  await steps.getByText("Refund that purchase at Lemon Squeezy.").waitFor();
  await send(1);
  await send(2);
  await steps.getByRole("heading", { name: "The first refund is done (done)" }).waitFor();
});

test("production saves no kit and links to development", async () => {
  await page.goto(at(`relays/new?sell=${SOURCE}`).replace("/development/", "/production/"));
  await kit.getByText("Save a kit in development, try it there, and promote it to production.").waitFor();
  expect(await kit.getByRole("button", { name: /^Save/ }).count()).toBe(0);
  expect(await kit.getByRole("link", { name: "Open development" }).getAttribute("href")).toEndWith(`/development/relays/new?sell=${SOURCE}`);
});

test("the plan of a promote links to the page in production, which needs its own secret", async () => {
  const names = { product: "globe", plan: "solo", plan2: "crew" };
  expect((await running.api("POST", "/kits/paddle", names, "development")).status).toBe(201);
  await page.goto(at("relays/to/production"));
  const link = page.getByRole("region", { name: "relay paddle", exact: true }).getByRole("link", { name: "Relays › paddle › Secrets" });
  expect(await link.getAttribute("href")).toContain("/production/relays/paddle");
});

test("the pages log no error except the refusal of the invalid name", () => {
  expect(complaints.filter((complaint) => !complaint.includes("status of 400"))).toEqual([]);
});
