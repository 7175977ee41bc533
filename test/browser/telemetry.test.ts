/** Tests that Settings shows the export of telemetry and its last failure. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { startCollector } from "../kit/collector.ts";
import { poll } from "../kit/patience.ts";

const collector = startCollector();
const dashboard = await openDashboard({
  config: {
    allowPrivate: ["localhost"],
    telemetry: {
      endpoint: collector.url,
      headers: { "api-key": "of-the-operator" },
      protocol: "http/json",
      exportWithinMs: 10_000,
      resource: { "service.name": "shop" },
      traceRatio: 1,
      metricsEveryMs: 500,
    },
  },
});
const { page, at, complaints } = dashboard;
afterAll(async () => {
  await dashboard[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

test("Settings shows the collector and the last export, without the headers", async () => {
  await poll(() => collector.exports.length, Boolean);
  collector.answer({ status: 500 });
  const failure = async (): Promise<string | null> => {
    await page.goto(at("settings?tab=server"));
    await page.getByText("Telemetry", { exact: true }).waitFor();
    return await page.locator("dl").first().textContent();
  };
  const shown = await poll(failure, (text) => text?.includes("The collector answered 500.") === true);
  expect(shown).toContain(collector.url);
  expect(shown).toContain("Metrics: last exported");
  expect(shown).not.toContain("of-the-operator");
  await shoot(page, "telemetry", { fullPage: true });
  expect(complaints).toEqual([]);
});
