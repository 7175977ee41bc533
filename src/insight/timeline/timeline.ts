/**
 * Reads one person's timeline, newest first: events, benefits, mails, records, and changes by hand, each in a sentence. A page reads a bounded
 * number of rows of each list.
 */
import { toIso } from "../../base/clock.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { requirePerson } from "../../shop/people/person.ts";
import { readPage } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { changeSource, mailSource, recordSource } from "./activity-source.ts";
import { creditSource, grantEndSource, grantSource, planSource, purchaseSource } from "./benefit-source.ts";
import { describeEvents, eventSource } from "./event-source.ts";
import type { TimelineItem } from "./item.ts";
import { mergePage, type Source } from "./merge.ts";
import { formatActor } from "./sentence.ts";
import type { TimelineDraft, TimelineScope } from "./source.ts";

/** Reads a page of the timeline. Throws `not_found` for an unknown person. */
export async function readTimeline(
  store: Store,
  at: TimelineScope,
  request: PageRequest,
): Promise<Page<TimelineItem>> {
  const page = await readPage(store, request, async (tx, part) => mergePage(await sourcesOf(tx, at), part));
  const words = await describeEvents(store, page.items);
  const items = page.items.map(({ event: _, atMs, ...item }) => ({
    ...item,
    at: toIso(atMs),
    ...words.get(item.id),
  }));
  return { items, next: page.next };
}

/** The order of the lists decides between items of the same moment: a result comes before the event that caused it. */
async function sourcesOf(tx: Reader, at: TimelineScope): Promise<Source<TimelineDraft>[]> {
  const { createdAt, createdBy } = await requirePerson(tx, at.environmentId, at.personId);
  const made: TimelineDraft = {
    id: "made",
    kind: "made",
    atMs: createdAt,
    sentence: `Person created ${formatActor(createdBy)}`,
    detail: null,
    look: "none",
    thing: { kind: "person", id: at.personId, collection: null },
    relay: createdBy.startsWith("relay:") ? createdBy.slice("relay:".length) : null,
    eventId: null,
  };
  return [
    grantEndSource(tx, at),
    grantSource(tx, at),
    creditSource(tx, at),
    planSource(tx, at),
    purchaseSource(tx, at),
    recordSource(tx, at, "owner"),
    recordSource(tx, at, "recipient"),
    mailSource(tx, at),
    changeSource(tx, at),
    { name: "made", keys: "number", read: async () => [{ key: 1, at: createdAt, item: made }] },
    eventSource(tx, at),
  ];
}
