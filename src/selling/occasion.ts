/** On what occasion something is sold or taken back, and how that ended. The shape of an end is an action's outcome. */
import type { Json } from "../ground/json.ts";
import type { ResultCode } from "../ground/result-code.ts";
import { findPerson } from "../people/person.ts";
import type { Reader } from "../store/port.ts";

export interface Occasion {
  environmentId: number;
  personId: string;
  /** The relay that runs, by name; null when a payment receipt came in. */
  relayName: string | null;
  eventId: string | null;
  /** In words, for what is ended: `relay:<name>`, `receipt`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

export interface SaleFailure {
  outcome: "failed";
  code: ResultCode;
  message: string;
  /** Trying again cannot help: the event is dead at once. */
  final: boolean;
}

export type SaleOutcome =
  | { outcome: "done" | "skipped"; code?: ResultCode; message?: string; before?: Json; after?: Json }
  | SaleFailure;

/** A failure that a retry may overcome, unless `final`. */
export function fail(code: ResultCode, message: string, final = false): SaleFailure {
  return { outcome: "failed", code, message, final };
}

/** What an action's run tells of its occasion; the shape is a part of the action contract's. */
interface Run {
  environmentId: number;
  nowMs: number;
  relay: { name: string };
  event: { id: string };
  person: { id: string } | null;
}

/**
 * The occasion of an action's run, its person as they stand in this transaction: the failure `person_suspended` (final) for one who is
 * suspended, `person_not_found` for one erased since the attempt began.
 */
export async function readOccasion(
  tx: Reader,
  run: Run,
): Promise<{ occasion: Occasion & { relayName: string } } | { failure: SaleFailure }> {
  const { relay, environmentId, nowMs } = run;
  if (run.person === null) throw new Error("An action that needs a person ran without one.");
  const person = await findPerson(tx, environmentId, run.person.id);
  if (person === null) {
    return { failure: fail("person_not_found", "The event's person was erased since, so nothing was done.") };
  }
  if (person.status === "suspended") {
    return {
      failure: fail(
        "person_suspended",
        "The person is suspended: make the person active again, then replay.",
        true,
      ),
    };
  }
  const by = `relay:${relay.name}`;
  return {
    occasion: { environmentId, personId: person.id, relayName: relay.name, eventId: run.event.id, by, nowMs },
  };
}
