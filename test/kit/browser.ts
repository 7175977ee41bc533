/**
 * A dashboard in a real browser, against a whole service in this process. One browser for the process; every page keeps what its console said,
 * so that a test can hold that nothing was refused by the page's policy and nothing broke.
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
  /** Errors of the console, of the page and of its policy, so far; an answer's status alone is none. */
  complaints: string[];
  /** The address of a page of the environment, such as `relays/order-paid`. */
  at(path: string): string;
}

/**
 * A service whose clock is the machine's, in local development with the test's app beside it unless told otherwise, and a browser signed
 * in by a one-time link.
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
    // The page signs in after it has loaded: a test that goes elsewhere before would cut that off and stay signed out.
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

/** One for all files of this process; it ends with the process. */
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

/** A context of its own, with nothing stored; the stack closes it. */
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
 * Lets no request to these addresses through until what it answers is called. The route stays there: to take a page's last one away changes how the
 * browser loads and keeps files, under requests that are on their way.
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
