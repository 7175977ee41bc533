/**
 * Lists the problems of an environment, newest first: the stored ones, and what else Home shows, such as a hold and dead events. No row stores the
 * latter, so each gets an id of the time when it began. It sorts and pages among the ids of the rows.
 */
import { makePage, type Page, type PageRequest } from "../../base/page.ts";
import { hasProblem, listProblems, type ProblemView } from "../../platform/audit/problem.ts";
import type { Store } from "../../store/port.ts";
import type { AttentionItem } from "./attention-item.ts";
import { listOpenItems, type OpenItemContext } from "./open-item.ts";

/** `open` leaves out cleared problems. */
export async function listAllProblems(
  store: Store,
  context: OpenItemContext,
  open: boolean,
  request: PageRequest,
): Promise<Page<ProblemView>> {
  const { id } = context.environment;
  const { items, next } = await store.read((tx) => listProblems(tx, id, open, request));
  // The items after the last row of a page that is not the last one belong to later pages.
  const end = next === null ? "" : (items.at(-1)?.id ?? "");
  const others = (await listUnstored(store, context)).filter(
    (one) => one.id > end && (request.after === null || one.id < request.after),
  );
  const sorted = [...items, ...others].sort((one, other) => (one.id < other.id ? 1 : -1));
  const page = makePage(
    sorted,
    request,
    (one) => one.id,
    (one) => one,
  );
  return { items: page.items, next: page.next ?? next };
}

/** Lists what Home shows and no row of a problem stores. */
async function listUnstored(store: Store, context: OpenItemContext): Promise<ProblemView[]> {
  const { items } = await listOpenItems(store, context);
  const environmentId = context.environment.id;
  const unstored: ProblemView[] = [];
  for (const item of items) {
    const key = { environmentId, code: item.code, target: item.target };
    if (!(await store.read((tx) => hasProblem(tx, key)))) unstored.push(viewItem(item));
  }
  return unstored;
}

function viewItem({ code, target, message, todo, next, since }: AttentionItem): ProblemView {
  const time = Date.parse(since).toString(16).padStart(12, "0");
  const subject = new Bun.CryptoHasher("sha256").update(`${code} ${target}`).digest("hex").slice(0, 20);
  return { id: `prb_${time}${subject}`, code, target, message, todo, next, raisedAt: since, clearedAt: null };
}
