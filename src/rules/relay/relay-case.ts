/**
 * Cases: example requests that a user keeps with a relay, each with the result at that time. A save compares the new result with the kept one
 * (insight/simulate/case-run.ts). Cases are data of the environment and in no file, because their bodies can name people (ADR 42).
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { MAX_RELAY_CASES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { json as anyJson, oneOf, orNull, show, textOrNull, time } from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, json, orNull as nullable, type RowOf, text } from "../../store/table.ts";
import { type RelayRow, relayTarget } from "./relay.ts";

/** The result of a case: how the request ends, and each action with its filled templates. */
export const caseResult = Type.Object({
  ends: oneOf(["done", "ignored", "refused", "failed"]),
  why: orNull(Type.String({ description: "for ignored: the name of when that does not match; else a code" })),
  actions: Type.Array(
    Type.Object({
      type: Type.String(),
      rendered: anyJson,
      code: textOrNull,
    }),
  ),
});
export type CaseResult = Static<typeof caseResult>;

const RELAY_CASE = defineTable({
  name: "relay_case",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    relayId: text(),
    name: text(),
    body: text(),
    contentType: text(),
    expected: json<CaseResult>(),
    personId: nullable(text()),
    updatedAt: integer(),
    updatedBy: text(),
  },
});
export type RelayCase = RowOf<typeof RELAY_CASE>;

export const caseView = Type.Object({
  name: Type.String(),
  body: Type.String(),
  contentType: Type.String(),
  expected: caseResult,
  updatedAt: time,
  updatedBy: Type.String(),
});
export type CaseView = Static<typeof caseView>;

export function viewCase(row: RelayCase): CaseView {
  return show(caseView, row);
}

/** Lists the cases of a relay by name. */
export function listCases(tx: Reader, relayId: string): Promise<RelayCase[]> {
  return RELAY_CASE.all(tx, "WHERE relay_id = $relayId ORDER BY name", { relayId });
}

/** Lists the cases of the relays with these names. A case of `environmentId` replaces its namesake of `otherId`. */
export async function listCasesOf(
  tx: Reader,
  names: readonly string[],
  { environmentId, otherId }: { environmentId: number; otherId: number | null },
): Promise<(RelayCase & { relayName: string })[]> {
  const rows = await tx.all<{ relayName: string }>(
    `SELECT ${RELAY_CASE.columnsOf("relay_case")}, relay.name AS relayName
     FROM relay_case JOIN relay ON relay.id = relay_case.relay_id
     WHERE relay_case.environment_id IN ($environmentId, $otherId)
     ORDER BY relay.name, relay_case.name, relay_case.environment_id = $environmentId DESC`,
    { environmentId, otherId: otherId ?? environmentId },
  );
  const wanted = new Set(names);
  const found = new Map<string, RelayCase & { relayName: string }>();
  for (const row of rows) {
    const one = RELAY_CASE.read(row) as RelayCase & { relayName: string };
    const key = `${one.relayName}/${one.name}`;
    if (wanted.has(one.relayName) && !found.has(key)) found.set(key, one);
  }
  return [...found.values()];
}

export function findCase(tx: Reader, relayId: string, name: string): Promise<RelayCase | null> {
  return RELAY_CASE.find(tx, { relayId, name });
}

type KeptCase = Pick<RelayCase, "name" | "body" | "contentType" | "expected" | "personId">;

/** Keeps a case, or replaces the one with its name. Throws `invalid_input` where the relay has too many. */
export async function keepCase(
  tx: Writer,
  relay: RelayRow,
  kept: KeptCase,
  change: Change,
): Promise<RelayCase> {
  const known = await findCase(tx, relay.id, kept.name);
  if (known === null && (await listCases(tx, relay.id)).length >= MAX_RELAY_CASES)
    throw new Refusal(
      "invalid_input",
      `The relay has ${MAX_RELAY_CASES} cases, and no relay can have more: remove one first, with relay relays cases ${relay.name} --remove <case>.`,
    );
  const row: RelayCase = {
    id: known?.id ?? newId("cas", change.nowMs),
    environmentId: relay.environmentId,
    relayId: relay.id,
    ...kept,
    updatedAt: change.nowMs,
    updatedBy: change.by,
  };
  if (known === null) await RELAY_CASE.insert(tx, row);
  else await RELAY_CASE.update(tx, row);
  const after = { case: row.name, ends: row.expected.ends };
  await writeAudit(tx, { ...change, action: "relay.case_kept", target: relayTarget(relay.name), after });
  return row;
}

/** Removes a case. Throws `not_found`. */
export async function removeCase(tx: Writer, relay: RelayRow, name: string, change: Change): Promise<void> {
  const { id } = await RELAY_CASE.require(
    tx,
    { relayId: relay.id, name },
    `The relay has no case with this name: relay relays cases ${relay.name} lists its cases.`,
  );
  await tx.run("DELETE FROM relay_case WHERE id = ?1", id);
  const target = relayTarget(relay.name);
  await writeAudit(tx, { ...change, action: "relay.case_removed", target, before: { case: name } });
}
