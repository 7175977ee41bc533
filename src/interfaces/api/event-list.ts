/** Routes of many events: the list, and the counts by state and over time. */
import { type Static, Type } from "typebox";
import { isId } from "../../base/id.ts";
import { readPageRequest } from "../../base/page.ts";
import { fields, oneOf, pageOf, pageQuery, readTime } from "../../base/schema.ts";
import { countEvents, eventCounts } from "../../engine/event/count.ts";
import { EVENT_STATES, EVENT_TRIGGERS } from "../../engine/event/event.ts";
import { resolveNames } from "../../engine/event/filter-lookup.ts";
import { BAR_WIDTHS, drawHistogram, histogramView } from "../../engine/event/histogram.ts";
import { readEvents } from "../../engine/event/list.ts";
import { eventItem } from "../../engine/event/view.ts";
import { findPersonByEmail } from "../../shop/people/person.ts";
import type { HttpDeps } from "../http/deps.ts";
import { requirePayloads } from "../http/payload-mask.ts";
import { type EnvironmentCall, environmentRoute } from "../http/route.ts";

/** The filters of the list, except the state. */
const eventFilter = {
  relay: Type.Optional(
    Type.String({ maxLength: 63, description: "the name of a relay that exists or was deleted" }),
  ),
  trigger: Type.Optional(oneOf(EVENT_TRIGGERS)),
  reason: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "the code of the last failure, also for events that wait for a retry; any: any code",
    }),
  ),
  person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
  since: Type.Optional(Type.String()),
  until: Type.Optional(Type.String()),
  q: Type.Optional(Type.String({ maxLength: 200, description: "text of at most 200 characters" })),
  mapped: Type.Optional(
    Type.String({
      maxLength: 270,
      description: "a mapped name and the start of its value, such as order:cs_live",
    }),
  ),
};
const eventFilterFields = Type.Object(eventFilter);

type FilterCall = Pick<EnvironmentCall, "environmentId" | "may"> & { deps: HttpDeps };

/**
 * Reads the filter. A search in payloads would tell their values, so it needs the permission to see them. The address of a person is visible to
 * everyone, so a search for it also finds events that name it and did not find the person.
 */
async function readFilter<Asked extends Static<typeof eventFilterFields>>(
  call: FilterCall,
  { since, until, ...asked }: Asked,
) {
  const { q = "", mapped } = asked;
  const { environmentId, deps } = call;
  const isOfPerson = (): Promise<boolean> =>
    deps.store.read(async (tx) => (await findPersonByEmail(tx, environmentId, q)) !== null);
  if (q !== "" && !isId("evt", q) && !(await isOfPerson())) requirePayloads(call, "A search in payloads (q)");
  if (mapped !== undefined) requirePayloads(call, "A search in mapped values (mapped)");
  const between = { sinceMs: readTime("since", since), untilMs: readTime("until", until) };
  return { ...(await resolveNames(deps.store, environmentId, asked)), ...between };
}

export const eventListRoutes = [
  environmentRoute({
    method: "GET",
    path: "/events",
    needs: "read",
    summary:
      "Lists events without their payloads, newest first, each with its mapped event_type and a line of its first mapped values.",
    query: fields({ ...pageQuery, ...eventFilter, state: Type.Optional(oneOf(EVENT_STATES)) }),
    answer: pageOf(eventItem),
    async handle(call) {
      const { deps, environmentId } = call;
      const { limit, cursor, ...asked } = call.query;
      const filter = await readFilter(call, asked);
      return await readEvents(deps.store, environmentId, filter, readPageRequest({ limit, cursor }));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/counts",
    needs: "read",
    summary: "Counts the events that match a filter by state, up to 10,000 for each state.",
    query: fields(eventFilter),
    answer: Type.Object({ counts: eventCounts }),
    async handle(call) {
      const filter = await readFilter(call, call.query);
      return { counts: await countEvents(call.deps.store, call.environmentId, filter) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/histogram",
    needs: "read",
    summary:
      "Counts the events that match a filter over time, by current state. Large numbers are estimated from samples.",
    query: fields({
      ...eventFilter,
      state: Type.Optional(oneOf(EVENT_STATES)),
      every: Type.Optional(oneOf(BAR_WIDTHS)),
    }),
    answer: Type.Object({ histogram: histogramView }),
    async handle(call) {
      const { deps, environmentId, nowMs } = call;
      const { every, ...asked } = call.query;
      const filter = await readFilter(call, asked);
      return { histogram: await drawHistogram(deps.store, environmentId, { ...filter, every }, nowMs) };
    },
  }),
];
