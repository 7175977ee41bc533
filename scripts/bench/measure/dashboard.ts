/**
 * Measures the requests of the dashboard's pages on a full shop's store: the first screen and every filter. Each request has the CPU time of the
 * service's main thread and the longest time for which it blocked the event loop.
 */
import { compareWithBar, type Figure, median } from "../figure.ts";
import type { Measure, Run } from "../measure.ts";
import { slownessFor } from "../measured-service.ts";
import { findDeadEvent, openShop, type Shop } from "../shop.ts";
import { listRequests } from "../shop-request.ts";

const CPU_BAR_MS = 100;
const STRETCH_BAR_MS = 25;

interface Times {
  page: string;
  path: string;
  cpu: Figure;
  stretch: Figure;
}

export const dashboard: Measure = {
  name: "dashboard",
  what: "requests of the dashboard's pages: CPU, and how long they block the event loop",
  pinned: true,
  async measure(run) {
    await using shop = await openShop(run);
    const times: Times[] = [];
    for (const [page, path] of listRequests(await findDeadEvent(shop)))
      times.push(await measureRequest(shop, page, path, run));
    return run.verbose ? times.flatMap(({ cpu, stretch }) => [cpu, stretch]) : foldPages(times);
  },
};

/** Returns for each page the request with the most CPU time, the one with the longest block, and every request over a bar. */
function foldPages(times: readonly Times[]): Figure[] {
  const pages = [...new Set(times.map(({ page }) => page))];
  return pages.flatMap((page) => {
    const own = times.filter((one) => one.page === page);
    return [...foldWorst(own.map(({ cpu }) => cpu)), ...foldWorst(own.map(({ stretch }) => stretch))];
  });
}

function foldWorst(figures: readonly Figure[]): Figure[] {
  const sorted = figures.toSorted((one, other) => Number(other.ratio) - Number(one.ratio));
  return sorted.filter((figure, at) => at === 0 || figure.met === false);
}

async function measureRequest(shop: Shop, page: string, path: string, { tiny }: Run): Promise<Times> {
  const first = await shop.ask(path);
  if (first.status !== 200) throw new Error(`${path} got status ${first.status}: ${first.text}`);
  const [cpuTries, stretchTries] = tiny ? [1, 1] : [7, 4];
  const cpus: number[] = [];
  for (let round = 0; round < cpuTries; round++) {
    const before = await shop.tell("cpu");
    await shop.ask(path);
    cpus.push((await shop.tell("cpu")) - before);
  }
  const stretches: number[] = [];
  for (let round = 0; round < stretchTries; round++) {
    await shop.tell("watch");
    await shop.ask(path);
    stretches.push(await shop.tell("worst"));
  }
  const what = `${page}, GET ${shorten(path)}`;
  const compare = async (which: string, ms: number, barMs: number): Promise<Figure> =>
    compareWithBar(`${which}, ${what}`, ms, barMs, await slownessFor(shop, ms, barMs));
  return {
    page,
    path,
    cpu: await compare("CPU of a request", median(cpus), CPU_BAR_MS),
    stretch: await compare("event loop blocked", Math.min(...stretches), STRETCH_BAR_MS),
  };
}

function shorten(path: string): string {
  return path.replace(/=20\d\d-[^&]*/g, "=…").replace(/(evt|per)_0*([0-9a-f]{0,4})[0-9a-f-]*/g, "$1_$2…");
}
