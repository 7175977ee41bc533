/**
 * A wait in a browser that runs out tells what the page showed then: where it was, its visible text, what its console said, and which
 * requests were refused or still under way. A red run explains itself by it, on a machine that nobody can look at.
 */
import { errors, type Locator, type Page, type Request } from "playwright-core";
import { PATIENCE_MS } from "./patience.ts";

interface Watched {
  /** The last of what the console, the page's policy and refused requests said. */
  said: string[];
  /** When each request that has no end yet began. */
  underWay: Map<Request, number>;
}

const SAID_KEPT = 12;
const TEXT_SHOWN = 500;

const watched = new WeakMap<Page, Watched>();
const explained = new WeakSet<Error>();
const wrapped = new WeakSet<object>();

/** Follows the page from now on; its acts and those of its locators explain themselves where they wait in vain. */
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

/** Puts the explanation around each act of one of playwright's classes, once for all of its objects. */
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

/** The title, and the visible text of its main part and of what is open above it. */
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
