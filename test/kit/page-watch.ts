/**
 * Explains timeouts of browser tests. The error shows the page's URL, its visible text, its console messages, and the requests that failed or are
 * pending. A failed run then explains itself, even on a machine that no person can look at.
 */
import { errors, type Locator, type Page, type Request } from "playwright-core";
import { PATIENCE_MS } from "./patience.ts";

interface Watched {
  /** The last messages of the console, the page's policy and failed requests. */
  said: string[];
  /** Start time of each pending request. */
  underWay: Map<Request, number>;
}

const SAID_KEPT = 12;
const TEXT_SHOWN = 500;

const watched = new WeakMap<Page, Watched>();
const explained = new WeakSet<Error>();
const wrapped = new WeakSet<object>();

/** Watches the page from now on. Timeouts of its methods and of its locators' methods explain themselves. */
export function watchPage(page: Page): void {
  if (watched.has(page)) return;
  const { said, underWay }: Watched = { said: [], underWay: new Map() };
  watched.set(page, { said, underWay });
  const note = (line: string): void => {
    said.push(line.slice(0, TEXT_SHOWN));
    if (said.length > SAID_KEPT) said.shift();
  };
  page.on("console", (message) => note(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => note(`page error: ${error}`));
  page.on("crash", () => note("the page crashed"));
  page.on("request", (request) => underWay.set(request, performance.now()));
  page.on("requestfinished", (request) => underWay.delete(request));
  page.on("requestfailed", (request) => {
    underWay.delete(request);
    note(`${nameRequest(request)} failed: ${request.failure()?.errorText}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) note(`${nameRequest(response.request())} was answered ${response.status()}`);
  });
  explainWaits(Object.getPrototypeOf(page));
  explainWaits(Object.getPrototypeOf(page.locator("html")));
}

/** Wraps each method of a Playwright class once, for all of its objects. */
function explainWaits(prototype: Record<string, unknown>): void {
  if (wrapped.has(prototype)) return;
  wrapped.add(prototype);
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const act = prototype[name];
    if (typeof act !== "function" || name === "constructor" || name.startsWith("_")) continue;
    prototype[name] = function (this: Page | Locator, ...given: unknown[]): unknown {
      const result: unknown = Reflect.apply(act, this, given);
      return result instanceof Promise ? result.catch((error: unknown) => explain(error, "page" in this ? this.page() : this)) : result;
    };
  }
}

async function explain(error: unknown, page: Page): Promise<never> {
  if (error instanceof errors.TimeoutError && !explained.has(error)) {
    explained.add(error);
    const [first = "", ...rest] = Bun.stripANSI(error.message).split("\n");
    const waitedFor = rest.find((line) => /^\W*waiting /.test(line))?.replace(/^\W+/, "");
    const why = waitedFor === undefined ? first : `${first.replace(/\.$/, "")}, ${waitedFor}`;
    error.message = [`${why}; the page was ${page.url()}`, ...rest, await describe(page)].join("\n");
  }
  throw error;
}

async function describe(page: Page): Promise<string> {
  const { said, underWay } = watched.get(page) ?? { said: [], underWay: new Map<Request, number>() };
  const nowMs = performance.now();
  const waiting = [...underWay].map(([request, sinceMs]) => `${nameRequest(request)} since ${((nowMs - sinceMs) / 1_000).toFixed(1)} s`);
  const silent = [`it did not answer within ${PATIENCE_MS} ms`];
  const shown = page.isClosed()
    ? ["it is closed"]
    : await Promise.race([look(page).catch((error) => [String(error)]), Bun.sleep(PATIENCE_MS).then(() => silent)]);
  const list = (title: string, lines: readonly string[]) => [`${title}:`, ...(lines.length === 0 ? ["none"] : lines).map((line) => `  ${line}`)];
  return [...list("What the page showed", shown), ...list("What it said, the last", said), ...list("Requests under way", waiting)].join("\n");
}

/** Returns the title, and the visible text of the main part and of open dialogs and alerts. */
async function look(page: Page): Promise<string[]> {
  const { title, texts } = await page.evaluate(() => {
    const parts = [...document.querySelectorAll<HTMLElement>("main, dialog[open], [role=alert]")];
    return { title: document.title, texts: (parts.length === 0 ? [document.body] : parts).map((part) => part.innerText) };
  });
  return [`title: ${title}`, ...texts.map((text) => text.replaceAll(/\s+/g, " ").slice(0, TEXT_SHOWN))];
}

function nameRequest(request: Request): string {
  return `${request.method()} ${request.url()}`;
}
