/**
 * Three in the morning: a server whose clock went through what happened before and now runs beside the machine's, and somebody who signs in to
 * a fresh browser, reads, and counts the clicks. Letters and Enter are the keyboard's, and no click.
 */
import type { Locator } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import type { ServicePorts } from "../../src/service.ts";
import { openDashboard } from "./browser.ts";
import { FakeCaller } from "./fake-caller.ts";
import { APP } from "./running-service.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** How often the service's clock catches up. */
const TICK_MS = 50;

export type Night = Awaited<ReturnType<typeof openNight>>;

/** A server in production as it was so many milliseconds ago What its relays call answers unless `ports` say otherwise. */
export async function openNight(agoMs: number, ports: ServicePorts = {}) {
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
    /** What was lost in between passes; then somebody signs in, and sees Home of the environment that needs somebody. */
    async signIn(): Promise<Locator> {
      await clock.leap(Math.max(0, systemClock.now() - clock.now()));
      following = follow();
      await page.goto(running.service.url);
      await write();
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/production\/home$/);
      return page.getByRole("region", { name: "Needs you" });
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
