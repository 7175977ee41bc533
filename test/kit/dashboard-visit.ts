/**
 * A dashboard after an incident: a server whose clock went through the past and now follows the clock of the machine, and an owner who signs in
 * with a new browser and reads. It counts the clicks. Letters and Enter are keys, not clicks.
 */
import type { Locator } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import type { ServicePorts } from "../../src/service.ts";
import { openDashboard } from "./browser.ts";
import { FakeCaller } from "./fake-caller.ts";
import { APP } from "./running-service.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** Interval at which the service's clock catches up with the machine's. */
const TICK_MS = 50;

export type DashboardVisit = Awaited<ReturnType<typeof openDashboardVisit>>;

/** Starts a production server whose clock is `agoMs` behind. Its outbound calls succeed unless `ports` replace the caller. */
export async function openDashboardVisit(agoMs: number, ports: ServicePorts = {}) {
  const clock = new VirtualClock(systemClock.now() - agoMs);
  const environments = ["development", "production"] as const;
  const dashboard = await openDashboard({ config: { mode: "server", clock }, ports: { caller: new FakeCaller(), ...ports }, environments });
  const { page, running, context } = dashboard;
  const write = async (): Promise<void> => {
    await page.getByLabel("E-mail").fill("owner@example.com");
    await page.getByLabel("Password").fill("a long enough password");
  };
  await write();
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/\/home$/);
  await context.clearCookies();
  let clicks = 0;
  let following: Promise<void> | null = null;
  let isOver = false;
  const follow = async (): Promise<void> => {
    while (!isOver) {
      await clock.advance(Math.max(0, systemClock.now() - clock.now()));
      await Bun.sleep(TICK_MS);
    }
  };
  return {
    page,
    running,
    clock,
    context,
    at: (path: string) => `${running.service.url}/apps/${APP}/production/${path}`,
    complaints: dashboard.complaints,
    api: (method: string, path: string, body?: unknown) => running.api(method, path, body, "production"),
    /** Moves the clock to the present, signs in, and waits for Home of the environment with problems. */
    async signIn(): Promise<Locator> {
      await clock.leap(Math.max(0, systemClock.now() - clock.now()));
      following = follow();
      await page.goto(running.service.url);
      await write();
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/production\/home$/);
      return page.getByRole("region", { name: "Needs attention" });
    },
    async click(what: Locator): Promise<void> {
      clicks += 1;
      await what.click();
    },
    get clicks(): number {
      return clicks;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isOver = true;
      await following;
      await dashboard[Symbol.asyncDispose]();
    },
  };
}
