/**
 * An attempt of an event as it would go, looked at and undone: the same code that runs one, in a transaction of which nothing stays. Where an
 * action would send, what it would send is shown, and the rest goes on as if it had arrived. Nothing leaves the house.
 */

import type { Json } from "../../base/json.ts";
import type { Failure } from "../../base/outcome.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Writer } from "../../store/port.ts";
import { countAttempt, type EventToRun } from "../event/event.ts";
import { Attempt, type AttemptDeps, type AttemptOutcome } from "./attempt.ts";

/** What an action would do. */
interface RehearsedAction {
  type: string;
  /** The action with its templates filled in; null: it was not come to, or its work was done before. */
  rendered: Json;
  /** What would be sent; null: it sends nothing, or does not come to it. */
  sends: Json;
  /** null: an action before it ends the attempt. */
  result: ActionResult | null;
}

export interface Rehearsal {
  end: AttemptOutcome;
  personId: string | null;
  /** Why no action was come to; null: they were. */
  notRun: ActionResult | null;
  actions: RehearsedAction[];
  warnings: string[];
}

/** `tx` is undone by the caller. */
export async function rehearse(
  tx: Writer,
  event: EventToRun,
  relay: LiveRelay,
  nowMs: number,
  deps: AttemptDeps,
): Promise<Rehearsal> {
  const actions: RehearsedAction[] = relay.actions.map(({ type }) => ({
    type,
    rendered: null,
    sends: null,
    result: null,
  }));
  let refused: Failure | null = null;
  const watched = {
    ...relay,
    actions: relay.actions.map((live, at) => ({
      ...live,
      start: async (...[writer, run]: Parameters<typeof live.start>) => {
        const shown = actions[at] as RehearsedAction;
        shown.rendered = run.renderData(live.action as Json);
        const started = await live.start(writer, run);
        if ("send" in started) ({ sends: shown.sends, refused } = started.preview());
        return started;
      },
    })),
  };
  const attempt = new Attempt(countAttempt(event), watched, nowMs, deps);
  const ended = await attempt.begin(tx);
  let step = ended ?? (await attempt.advance(tx));
  while ("send" in step) {
    step = await attempt.settle(tx, async () => refused ?? { outcome: "done", message: NOTHING_LEFT });
  }
  const [first] = attempt.results;
  const notRun = ended !== null && first !== undefined ? first : null;
  if (notRun === null)
    for (const [at, result] of attempt.results.entries()) Object.assign(actions[at] ?? {}, { result });
  return { end: step, personId: attempt.personId, notRun, actions, warnings: [...attempt.warnings] };
}

const NOTHING_LEFT = "Would be sent: nothing left the house.";
