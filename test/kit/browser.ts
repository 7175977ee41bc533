/**
 * Opens the dashboard in a real browser, against a complete service in this process. All tests of the process share one browser. Every page collects
 * its console messages, so a test can check that nothing broke and that the page's policy blocked nothing.
 */
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import { BROWSER_ARGS, findBrowser } from "./browser-program.ts";
import { watchPage } from "./page-watch.ts";
import { PATIENCE_MS } from "./patience.ts";
import { APP, type RunningOptions, type RunningService, startRunningService } from "./running-service.ts";

interface Dashboard extends AsyncDisposable {
  running: RunningService;
  context: BrowserContext;
  page: Page;
  /** Errors so far of the console, the page and its policy. An error status of a response is not one of them. */
  complaints: string[];
  /** Returns the URL of a page of the environment, for a path such as `relays/order-paid`. */
  at(path: string): string;
}

/**
 * Starts a service on the machine's clock and signs a browser in with a one-time link. The service runs in local development by default, with the
 * test's app in it.
 */
export async function openDashboard(options: RunningOptions & { timeZone?: string; locale?: string } = {}): Promise<Dashboard> {
  await using stack = new AsyncDisposableStack();
  const running = stack.use(
    await startRunningService({
      environments: ["local"],
      ...options,
      config: { mode: "local", baseUrl: null, clock: systemClock, ...options.config },
    }),
  );
  const context = await startBrowser(stack, options.timeZone, options.locale);
  const page = await context.newPage();
  const complaints = listen(page);
  const link = await running.service.makeSigninLink();
  if (link !== null) {
    await page.goto(link);
    // The page signs in after it has loaded. Navigating away earlier would cancel the sign-in.
    await page.waitForURL((url) => url.pathname !== "/signin");
  }
  const environment = options.environments?.[0] ?? "local";
  const owned = stack.move();
  return {
    running,
    context,
    page,
    complaints,
    at: (path) => `${running.service.url}/apps/${APP}/${environment}/${path}`,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** All files of this process share this browser. It ends with the process. */
let launched: Promise<Browser> | null = null;

async function launchBrowser(): Promise<Browser> {
  const found = await findBrowser();
  if (!found.ok) throw new Error(`There is no browser to test with: ${found.why}.`);
  return await chromium.launch({
    executablePath: found.browser.path,
    headless: true,
    timeout: PATIENCE_MS,
    args: BROWSER_ARGS,
    env: { ...process.env, ...found.browser.env } as Record<string, string>,
  });
}

/** Opens a new browser context with nothing stored. The stack closes it. */
export async function startBrowser(stack: AsyncDisposableStack, timezoneId = "UTC", locale = "en-GB"): Promise<BrowserContext> {
  launched ??= launchBrowser();
  const browser = await launched;
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale, timezoneId });
  stack.defer(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  context.on("page", watchPage);
  return context;
}

/**
 * Blocks requests to these URLs until the returned function is called. The route stays registered, because removing a page's last route changes how
 * the browser loads and caches files, even for requests in progress.
 */
export async function cutOff(page: Page, url: string | RegExp): Promise<() => void> {
  let isMended = false;
  await page.route(url, (route) => (isMended ? route.fallback() : route.abort()));
  return () => {
    isMended = true;
  };
}

export function listen(page: Page): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    const isAnswer = message.text().startsWith("Failed to load resource: the server responded");
    if ((message.type() === "error" || message.type() === "warning") && !isAnswer) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return complaints;
}
