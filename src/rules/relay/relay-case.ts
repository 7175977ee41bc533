/**
 * Cases: example requests that a user keeps with a relay, each with the result at that time. A save compares the new result with the kept one
 * (insight/simulate/case-run.ts). Cases are data of the environment and in no file, because their bodies can name people (ADR 42).
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { writeJson } from "../../base/json.ts";
import { MAX_CASES_BYTES, MAX_RELAY_CASES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, orNull, payloadJson, payloadText, show, textOrNull, time } from "../../base/schema.ts";
import { utf8Bytes } from "../../base/text.ts";
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
      rendered: payloadJson,
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
  body: payloadText,
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

/** A case without its texts, which can be large. */
export interface CaseHead {
  id: string;
  name: string;
  relayName: string;
  /** The bytes of its texts. */
  size: number;
}

/** The environment whose cases run, and another one whose cases run if they have no namesake; null: there is no other. */
interface CaseScope {
  environmentId: number;
  otherId: number | null;
}

const SIZE = "octet_length(body) + octet_length(expected)";

/** Reports whether a relay of these environments has a case. */
export async function hasCases(tx: Reader, { environmentId, otherId }: CaseScope): Promise<boolean> {
  const sql = "SELECT 1 FROM relay_case WHERE environment_id IN ($environmentId, $otherId) LIMIT 1";
  return (await tx.get(sql, { environmentId, otherId: otherId ?? environmentId })) !== null;
}

/** Lists the cases of the relay with this name, by the names of the cases. */
export async function listCaseHeads(
  tx: Reader,
  relayName: string,
  { environmentId, otherId }: CaseScope,
): Promise<CaseHead[]> {
  const rows = await tx.all<CaseHead>(
    `SELECT relay_case.id, relay_case.name, relay.name AS relayName, ${SIZE} AS size
     FROM relay JOIN relay_case ON relay_case.relay_id = relay.id
     WHERE relay.environment_id IN ($environmentId, $otherId) AND relay.name = $relayName
     ORDER BY relay_case.name, relay_case.environment_id <> $environmentId`,
    { environmentId, otherId: otherId ?? environmentId, relayName },
  );
  return rows.filter(({ name }, at) => rows[at - 1]?.name !== name);
}

export function findCaseById(tx: Reader, id: string): Promise<RelayCase | null> {
  return RELAY_CASE.find(tx, { id });
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
  const scope = { environmentId: relay.environmentId, otherId: null };
  const others = (await listCaseHeads(tx, relay.name, scope)).filter(({ name }) => name !== kept.name);
  if (others.length >= MAX_RELAY_CASES)
    throw new Refusal(
      "invalid_input",
      `The relay has ${MAX_RELAY_CASES} cases, and no relay can have more: remove one first, with relay relays cases ${relay.name} --remove <case>.`,
    );
  const size = others.reduce(
    (sum, one) => sum + one.size,
    utf8Bytes(kept.body) + utf8Bytes(writeJson(kept.expected)),
  );
  if (size > MAX_CASES_BYTES)
    throw new Refusal(
      "invalid_input",
      `The cases of the relay would be ${size} bytes together, and at most ${MAX_CASES_BYTES} are possible: keep a shorter request, or remove a case.`,
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
