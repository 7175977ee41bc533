/** Reads every page of the list of events with every filter. A filter that matches no event reads to the end of its steps. */
import { FILLED_RELAYS } from "./fill-store.ts";
import { type ProductReady, SECRET, start } from "./process.ts";

const PAGES = 20;
const DAY_MS = 86_400_000;

export interface Listed {
  name: string;
  /** Milliseconds of each page. */
  ms: number[];
  items: number;
}

interface Page {
  ms: number;
  next: string | null;
  items: number;
}

/** Starts a server on the folder and lists its events. */
export async function listEvents(path: string): Promise<Listed[]> {
  await using server = await start<ProductReady>("product.ts", path, FILLED_RELAYS, SECRET, "paused");
  const { base, key } = server.ready;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const ask = async (query: string): Promise<Page> => {
    const begun = performance.now();
    const answer = await fetch(`${base}/events?${query}`, { headers });
    const page = (await answer.json()) as { next: string | null; items: unknown[] };
    if (!answer.ok) throw new Error(`events?${query} was rejected: ${JSON.stringify(page)}`);
    return { ms: performance.now() - begun, next: page.next, items: page.items.length };
  };
  // Lists reject a name or an id that does not exist, so the person without events must exist.
  const invitation = { method: "POST", headers, body: JSON.stringify({ email: "nothing@example.com" }) };
  const invited = await fetch(`${base}/persons`, invitation);
  const { person } = (await invited.json()) as { person: { id: string } };
  const queries = listQueries(person.id);
  for (const query of queries) await ask(query);
  const listed: Listed[] = [];
  for (const query of queries) listed.push(await walk(query, ask));
  return listed;
}

function listQueries(person: string): string[] {
  const day = (ago: number): string => new Date(Date.now() - ago * DAY_MS).toISOString();
  return [
    "",
    ...["queued", "done", "failed", "dead"].map((state) => `state=${state}`),
    "relay=orders-1",
    "relay=orders-1&state=dead",
    "relay=orders-1&trigger=schedule",
    "trigger=schedule",
    `since=${day(20)}&until=${day(15)}`,
    `until=${day(25)}&state=failed`,
    "q=no+such+text",
    `person=${person}`,
  ];
}

async function walk(query: string, ask: (query: string) => Promise<Page>): Promise<Listed> {
  const ms: number[] = [];
  let [next, items]: [string | null, number] = [null, 0];
  for (let page = 0; page < PAGES; page++) {
    const answer: Page = await ask(next === null ? query : `${query}&cursor=${next}`);
    ms.push(answer.ms);
    next = answer.next;
    items += answer.items;
  }
  return { name: query === "" ? "all" : query.replace(/=(20|per_)[^&]*/g, ""), ms, items };
}
