/**
 * Rehearses an attempt: the code of a real attempt runs in a transaction that the caller undoes. For an action that would send, the rehearsal
 * records the content and continues as if the send had succeeded. Nothing is sent.
 */

import type { Json } from "../../base/json.ts";
import type { Failure } from "../../base/outcome.ts";
import type { ActionResult } from "../../rules/action/contract.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Writer } from "../../store/port.ts";
import { countAttempt, type EventToRun } from "../event/event.ts";
import { Attempt, type AttemptDeps, type AttemptOutcome } from "./attempt.ts";

/** The effect that an action would have. */
interface RehearsedAction {
  type: string;
  /** The action with its templates rendered; null if it was not reached, or its work was done before. */
  rendered: Json;
  /** The content that would be sent; null if nothing would. */
  sends: Json;
  /** The result; null if the attempt ends before the action. */
  result: ActionResult | null;
}

export interface Rehearsal {
  end: AttemptOutcome;
  personId: string | null;
  /** The reason why no action was reached; null if at least one was. */
  notRun: ActionResult | null;
  actions: RehearsedAction[];
  warnings: string[];
}

/** The caller must undo `tx`. */
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
  const recording = {
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
  const attempt = new Attempt(countAttempt(event), recording, nowMs, deps);
  const ended = await attempt.begin(tx);
  let step = ended ?? (await attempt.advance(tx));
  const sent = new Set<number>();
  while ("send" in step) {
    const failure = refused;
    if (failure === null) sent.add(attempt.results.length);
    // A later call posts the results of the earlier actions, so they are those of a real send.
    step = await attempt.finalizeSend(tx, async () => failure ?? { outcome: "done" });
  }
  const [first] = attempt.results;
  const notRun = ended !== null && first !== undefined ? first : null;
  if (notRun === null)
    for (const [at, result] of attempt.results.entries()) {
      const shown = sent.has(at) ? { ...result, message: NOT_SENT } : result;
      Object.assign(actions[at] ?? {}, { result: shown });
    }
  return { end: step, personId: attempt.personId, notRun, actions, warnings: [...attempt.warnings] };
}

const NOT_SENT = "Would be sent: this test sent nothing.";
