/**
 * The event's person as they stand now, inside the action's own transaction: they may have been suspended or erased since the attempt
 * began. It never creates anyone.
 */

import { type Failure, failFinally, failForNow } from "../ground/outcome.ts";
import { findPerson, type PersonRow } from "../people/person.ts";
import type { Reader } from "../store/port.ts";
import type { ActionRun } from "./contract.ts";

/** The person, or why nothing may be done for them: `person_suspended` (final) or `person_not_found`. */
export async function findActingPerson(
  tx: Reader,
  run: ActionRun,
): Promise<{ person: PersonRow; failure: null } | { person: null; failure: Failure }> {
  const person = run.person === null ? null : await findPerson(tx, run.environmentId, run.person.id);
  if (person === null) {
    const failure = failForNow(
      "person_not_found",
      "The event has no person, or the person was erased since.",
    );
    return { person: null, failure };
  }
  if (person.status !== "suspended") return { person, failure: null };
  const failure = failFinally(
    "person_suspended",
    "The event's person is suspended: make the person active again, then replay the event.",
  );
  return { person: null, failure };
}
