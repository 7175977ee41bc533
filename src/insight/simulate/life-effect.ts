/** The effect of a simulated step: what each event did, and what the person holds now. */
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, payloadText, textOrNull, timeOrNull } from "../../base/schema.ts";
import { EVENT_STATES, FINAL_STATES } from "../../engine/event/event.ts";
import { type EventView, requireEventView } from "../../engine/event/view.ts";
import { listLiveGrants } from "../../shop/people/access-grant.ts";
import { findBalance } from "../../shop/people/credit.ts";
import { findPersonByEmail } from "../../shop/people/person.ts";
import { currentPlan } from "../../shop/selling/plan-sale.ts";
import { listPurchases } from "../../shop/selling/purchase.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";

const MAX_SHOWN = 50;
/** The events of a step: some requests, each with an event of the source and of its followers. */
const MAX_EVENTS = 100;

const holdingsView = Type.Object({
  /** The person's id; null until the person exists. */
  person: textOrNull,
  /** The live entitlements by name, at most 50. */
  access: Type.Array(Type.String()),
  plan: textOrNull,
  credits: Type.Integer(),
  /** The products and plans with a receipt, at most 50, newest first. A refunded one ends with ` refunded`. */
  receipts: Type.Array(Type.String()),
});
export type Holdings = Static<typeof holdingsView>;

export const effectView = Type.Object({
  events: Type.Array(
    Type.Object({
      id: Type.String(),
      relay: Type.String(),
      state: oneOf(EVENT_STATES),
      reason: textOrNull,
      nextAttemptAt: timeOrNull,
      /** The reason why a queued event waits, in one sentence. */
      waits: textOrNull,
      /** The results of the last attempt. */
      results: Type.Array(
        Type.Object({
          type: Type.String(),
          outcome: oneOf(["done", "skipped", "failed"]),
          code: Type.Optional(Type.String()),
          message: Type.Optional(payloadText),
        }),
      ),
    }),
  ),
  /** True if every event is final or waits for longer than its turn. */
  settled: Type.Boolean(),
  holdings: holdingsView,
});
export type Effect = Static<typeof effectView>;

/** Reads the effect. Throws `not_found` for an unknown event. */
export async function readEffect(
  store: Pick<Store, "read">,
  at: { environmentId: number; nowMs: number },
  person: string,
  eventIds: readonly string[],
): Promise<Effect> {
  const events = await readEvents(store, at.environmentId, eventIds);
  // The holdings are read last, so that they have what the final events did.
  const holdings = await store.read((tx) => readHoldings(tx, at, person));
  return { events: events.map(showEvent), settled: events.every(isSettled), holdings };
}

/** Reads the events. Each has its own read, so that other work runs in between. */
async function readEvents(
  store: Pick<Store, "read">,
  environmentId: number,
  eventIds: readonly string[],
): Promise<EventView[]> {
  const events: EventView[] = [];
  for (const id of eventIds) {
    events.push(await store.read((tx) => requireEventView(tx, environmentId, id)));
    await yieldToEventLoop();
  }
  return events;
}

/** A caller of a step may wait this long for an answer, in addition to the requests. */
const GIVE_UP_MS = 10_000;

/** Waits until every event is final or waits for longer than its turn, or gives up. */
export async function waitUntilSettled(
  { store, clock }: { store: Pick<Store, "read" | "listen">; clock: Clock },
  environmentId: number,
  eventIds: readonly string[],
): Promise<void> {
  let isOver = false;
  let wake = (): void => undefined;
  const cancel = clock.after(GIVE_UP_MS, () => {
    isOver = true;
    wake();
  });
  const unlisten = store.listen(() => wake(), ["event_moved"]);
  try {
    for (;;) {
      const { promise: moved, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      if (isOver || (await readEvents(store, environmentId, eventIds)).every(isSettled)) return;
      await moved;
    }
  } finally {
    unlisten();
    cancel();
  }
}

function showEvent({ id, relay, state, reason, nextAttemptAt, waits, runs }: EventView) {
  const results = (runs.at(-1)?.results ?? []).map(({ type, outcome, code, message }) => ({
    type,
    outcome,
    ...(code === undefined ? {} : { code }),
    ...(message === undefined ? {} : { message }),
  }));
  return { id, relay: relay.name, state, reason, nextAttemptAt, waits: waits?.message ?? null, results };
}

function isSettled({ state, waits }: EventView): boolean {
  return FINAL_STATES.has(state) || (waits !== null && waits.for !== "turn");
}

async function readHoldings(
  tx: Reader,
  { environmentId, nowMs }: { environmentId: number; nowMs: number },
  email: string,
): Promise<Holdings> {
  const person = await findPersonByEmail(tx, environmentId, email);
  const personId = person?.id ?? "";
  const live = await listLiveGrants(tx, { environmentId, personId, entitlement: null, nowMs }, MAX_SHOWN);
  const page = { limit: MAX_SHOWN, after: null };
  const sold = await listPurchases(tx, environmentId, page, { person: personId, kind: "purchase" });
  return {
    person: person?.id ?? null,
    access: [...new Set(live.map(({ entitlement }) => entitlement))].sort(),
    plan: (await currentPlan(tx, environmentId, personId)).plan,
    credits: await findBalance(tx, environmentId, personId),
    receipts: sold.items.map(({ item, refundedBy }) => (refundedBy === null ? item : `${item} refunded`)),
  };
}

/** Splits a list of event ids, with commas between them. Throws if there are too many. */
export function readEventIds(text: string): string[] {
  const ids = new Set(text.split(",").filter((id) => id !== ""));
  if (ids.size <= MAX_EVENTS) return [...ids];
  throw new Refusal(
    "invalid_input",
    `events has ${ids.size} ids, and a step has at most ${MAX_EVENTS} events: send the ids of one step.`,
  );
}

export const effectQuery = {
  person: Type.String({ maxLength: MAX_EMAIL_CHARS, description: "the address of the person" }),
  events: Type.String({
    maxLength: 4_000,
    description: "the ids of the events of a step, with commas between them",
  }),
};
export const effectAnswer = Type.Object({ effect: effectView });
