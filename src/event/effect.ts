/**
 * The memory of what an event has already done, so that a retry or a replay finds its own earlier work. The key is the action's type,
 * its target and its ordinal among equals, so that an action inserted before it does not make the wrong one look done.
 */
import { type Json, parseJson, writeJson } from "../ground/json.ts";
import type { Reader, Writer } from "../store/port.ts";

export type Effect = { state: "intended" } | { state: "done"; after: Json | undefined };

/** Keys of a relay's actions in their order: `type\ntarget\nordinal`. */
export function makeEffectKeys(actions: readonly { type: string; target: string }[]): string[] {
  const seen = new Map<string, number>();
  return actions.map(({ type, target }) => {
    const name = `${type}\n${target}`;
    const ordinal = (seen.get(name) ?? 0) + 1;
    seen.set(name, ordinal);
    return `${name}\n${ordinal}`;
  });
}

/** Every effect of an event, by key. */
export async function readEffects(tx: Reader, eventSeq: number): Promise<Map<string, Effect>> {
  const rows = await tx.all<{ key: string; state: "intended" | "done"; result: string | null }>(
    "SELECT key, state, result FROM effect WHERE event_seq = ?1",
    eventSeq,
  );
  return new Map(
    rows.map((row) => [
      row.key,
      row.state === "intended"
        ? { state: "intended" }
        : { state: "done", after: row.result === null ? undefined : parseJson(row.result) },
    ]),
  );
}

/** Before something leaves the house that must not leave twice. */
export async function intendEffect(tx: Writer, eventSeq: number, key: string): Promise<void> {
  await tx.run("INSERT INTO effect (event_seq, key, state) VALUES (?1, ?2, 'intended')", eventSeq, key);
}

/**
 * In the transaction of the effect itself: a second one of the same key is refused by the primary key (UniqueViolation), so that work is
 * never done twice even where two runners believe that it is theirs. `after` is shown again when a later run skips it.
 */
export async function completeEffect(
  tx: Writer,
  eventSeq: number,
  key: string,
  after: Json | undefined,
): Promise<void> {
  await tx.run(
    "INSERT INTO effect (event_seq, key, state, result) VALUES (?1, ?2, 'done', ?3)",
    eventSeq,
    key,
    writeAfter(after),
  );
}

/** As `completeEffect`, of what was intended before. Throws where the intent is not there, or was settled by another. */
export async function settleEffect(
  tx: Writer,
  eventSeq: number,
  key: string,
  after: Json | undefined,
): Promise<void> {
  const settled = await tx.run(
    "UPDATE effect SET state = 'done', result = ?3 WHERE event_seq = ?1 AND key = ?2 AND state = 'intended'",
    eventSeq,
    key,
    writeAfter(after),
  );
  if (settled !== 1) throw new Error("An effect was settled that is not intended any more.");
}

/** When it is certain that nothing left, so that a retry may try again. */
export async function dropIntent(tx: Writer, eventSeq: number, key: string): Promise<void> {
  await tx.run("DELETE FROM effect WHERE event_seq = ?1 AND key = ?2 AND state = 'intended'", eventSeq, key);
}

function writeAfter(after: Json | undefined): string | null {
  return after === undefined ? null : writeJson(after);
}
