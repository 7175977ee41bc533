/**
 * Runs the cases of a relay without effect, and compares each result with the kept one. The caller undoes the transaction. Signatures, duplicates
 * and a pause do not count, because a case shows what the definition does with a request.
 */
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { isJsonObject, type Json, parseJson, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { MAX_CASES_RUN } from "../../base/limit.ts";
import type { Warning } from "../../base/refusal.ts";
import { oneOf, orNull, payload, payloadText } from "../../base/schema.ts";
import { findEventToRun } from "../../engine/event/event.ts";
import { makeReceiverPayload } from "../../engine/event/insert.ts";
import type { AttemptDeps } from "../../engine/runner/attempt.ts";
import { type Rehearsal, rehearse } from "../../engine/runner/rehearse.ts";
import { type Environment, findEnvironment } from "../../platform/account/environment.ts";
import { matchesWhen, readMap } from "../../rules/relay/live-receiver.ts";
import { findLiveRelay, type LiveRelay, type OpenDeps } from "../../rules/relay/live-relay.ts";
import {
  type CaseHead,
  type CaseResult,
  caseResult,
  findCaseById,
  hasCases,
  listCaseHeads,
  type RelayCase,
} from "../../rules/relay/relay-case.ts";
import { receiveRequest } from "../../rules/verify/received-request.ts";
import { findPerson } from "../../shop/people/person.ts";
import { dryRun, dryRunWithin } from "../../store/dry-run.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store, Writer } from "../../store/port.ts";
import { writeEvent } from "./step.ts";

export interface CaseDeps extends AttemptDeps, OpenDeps {
  clock: Clock;
}

export const caseReport = Type.Object({
  total: Type.Integer(),
  asBefore: Type.Integer(),
  message: payload(
    Type.String({ description: "the number of cases, and each one whose result is different now" }),
  ),
  items: Type.Array(
    Type.Object({
      name: Type.String(),
      outcome: oneOf(["as_before", "changed", "not_run"]),
      before: orNull(caseResult),
      now: orNull(caseResult),
      /** The difference in words; null where there is none. */
      change: orNull(payloadText),
    }),
  ),
});
export type CaseReport = Static<typeof caseReport>;

/** The result of a request, and the existing person that it is about. */
interface RanCase {
  result: CaseResult;
  personId: string | null;
}

/** Runs a request against the stored relay, and undoes it. Returns null for a relay without a receiver. */
export async function runRequest(
  store: Store,
  deps: CaseDeps,
  environmentId: number,
  relayName: string,
  request: Pick<RelayCase, "body" | "contentType">,
): Promise<RanCase | null> {
  const run = async (tx: Writer): Promise<RanCase | null> => {
    const relay = await findLiveRelay(tx, environmentId, relayName, deps);
    return relay?.receiver == null ? null : await runOne(tx, deps, relay, request);
  };
  return await dryRun(store, "relay", run, environmentId);
}

/** Makes the state of a transaction in which cases run, such as a definition that is not saved. */
type Prepare = (tx: Writer) => Promise<unknown>;

/** The most cases of one transaction, and the bytes of their bodies, because a transaction blocks the event loop. */
const CASES_AT_ONCE = 4;
const BYTES_AT_ONCE = 32 * 1024;

/**
 * Runs the cases of relays, as they are after `prepare`, in transactions that are undone. Returns a report for each relay that has cases. A case
 * above the limit of one plan is not run.
 */
export async function runCases(
  store: Store,
  deps: CaseDeps,
  environment: CaseEnvironment,
  relayNames: readonly string[],
  prepare: Prepare = async () => undefined,
): Promise<Map<string, CaseReport>> {
  await yieldToEventLoop();
  const heads = await listHeads(store, environment, relayNames);
  const items = new Map<string, CaseReport["items"]>();
  for (const { relayName } of heads) items.set(relayName, []);
  let left = heads.slice(0, MAX_CASES_RUN);
  while (left.length > 0) {
    const some = takeSome(left);
    left = left.slice(some.length);
    await yieldToEventLoop();
    for (const { relayName, ...item } of await runSome(store, deps, environment.id, some, prepare))
      items.get(relayName)?.push(item);
  }
  for (const { relayName, name } of heads.slice(MAX_CASES_RUN))
    items.get(relayName)?.push({ name, outcome: "not_run", before: null, now: null, change: null });
  return new Map([...items].map(([name, list]) => [name, makeReport(list)]));
}

/** Runs some cases in one transaction. Leaves out a case that was removed meanwhile. */
async function runSome(
  store: Store,
  deps: CaseDeps,
  environmentId: number,
  heads: readonly CaseHead[],
  prepare: Prepare,
): Promise<(CaseReport["items"][number] & { relayName: string })[]> {
  const cases: { relayName: string; kept: RelayCase }[] = [];
  for (const { id, relayName } of heads) {
    const kept = await store.read((tx) => findCaseById(tx, id));
    if (kept !== null) cases.push({ relayName, kept });
  }
  const run = async (tx: Writer): Promise<CaseResult[]> => {
    await prepare(tx);
    const ran: CaseResult[] = [];
    for (const { relayName, kept } of cases) {
      const relay = await findLiveRelay(tx, environmentId, relayName, deps);
      ran.push(relay === null ? NO_RECEIVER : (await runOne(tx, deps, relay, kept)).result);
    }
    return ran;
  };
  const results = await dryRun(store, "relay", run, environmentId);
  return cases.map(({ relayName, kept: { name, expected: before } }, at) => {
    const now = results[at] ?? NO_RECEIVER;
    const change = describeChange(before, now);
    return { relayName, name, outcome: change === null ? "as_before" : "changed", before, now, change };
  });
}

function takeSome(heads: readonly CaseHead[]): CaseHead[] {
  let total = 0;
  const end = heads.findIndex(({ size }, at) => {
    total += size;
    return at === CASES_AT_ONCE || (at > 0 && total > BYTES_AT_ONCE);
  });
  return heads.slice(0, end < 0 ? heads.length : end);
}

function makeReport(items: CaseReport["items"]): CaseReport {
  const asBefore = items.filter(({ outcome }) => outcome === "as_before").length;
  return { total: items.length, asBefore, message: formatReport(items), items };
}

/** Returns the warning about the cases whose result is different now. */
export function warnOfCases(report: CaseReport | undefined): Warning[] {
  if (report === undefined || report.items.every(({ change }) => change === null)) return [];
  return [{ code: "case_changed", field: "name", message: report.message }];
}

type CaseEnvironment = Pick<Environment, "id" | "appId" | "name">;

/** The relays whose cases are listed in one turn of the event loop. */
const RELAYS_AT_ONCE = 50;

/** Lists the cases of relays. Production also runs the cases of development that have no namesake, because users keep most cases there. */
async function listHeads(
  store: Store,
  { id: environmentId, appId, name }: CaseEnvironment,
  relayNames: readonly string[],
): Promise<CaseHead[]> {
  const scope = await store.read(async (tx) => {
    const other = name === "production" ? await findEnvironment(tx, appId, "development") : null;
    const found = { environmentId, otherId: other?.id ?? null };
    return (await hasCases(tx, found)) ? found : null;
  });
  const heads: CaseHead[] = [];
  if (scope === null) return heads;
  for (let at = 0; at < relayNames.length; at += RELAYS_AT_ONCE) {
    const some = relayNames.slice(at, at + RELAYS_AT_ONCE);
    const found = await store.read((tx) => Promise.all(some.map((one) => listCaseHeads(tx, one, scope))));
    heads.push(...found.flat());
    await yieldToEventLoop();
  }
  return heads;
}

const NO_RECEIVER: CaseResult = { ends: "refused", why: "no_receiver", actions: [] };

async function runOne(
  tx: Writer,
  deps: CaseDeps,
  relay: LiveRelay,
  { body, contentType }: Pick<RelayCase, "body" | "contentType">,
): Promise<RanCase> {
  const { receiver } = relay;
  if (receiver === null) return { result: NO_RECEIVER, personId: null };
  const nowMs = deps.clock.now();
  const { url: receiverUrl, bodies: kinds } = receiver;
  const headers = new Headers({ "content-type": contentType });
  const received = receiveRequest({
    headers,
    body: Buffer.from(body),
    kinds,
    search: "",
    receiverUrl,
    nowMs,
  });
  const parsed = received.parsed();
  if (!parsed.ok) return { result: { ends: "refused", why: "unreadable_body", actions: [] }, personId: null };
  const mapped = readMap(receiver.map, parsed);
  const mismatch = matchesWhen(receiver.when, mapped);
  if (mismatch !== null)
    return { result: { ends: "ignored", why: `when.${mismatch.name}`, actions: [] }, personId: null };
  const text = parsed.form === null ? body : writeJson(parsed.value);
  const rehearsal = await dryRunWithin(tx, async () => {
    const id = await writeEvent(tx, relay, makeReceiverPayload(text, mapped), nowMs, parsed);
    const event = await findEventToRun(tx, relay.environmentId, id);
    if (event === null) throw new Error("The event that was written is not there.");
    const active: LiveRelay = { ...relay, waiting: false, waitsFor: null };
    return await rehearse(tx, event, active, nowMs, deps);
  });
  const { personId } = rehearsal;
  // The rehearsal may have created the person, which is undone.
  const person = personId === null ? null : await findPerson(tx, relay.environmentId, personId);
  return { result: readResult(rehearsal), personId: person?.id ?? null };
}

function readResult({ end, notRun, actions, personId }: Rehearsal): CaseResult {
  const shown = actions.map(({ type, rendered, result }) => ({
    type,
    rendered: replaceText(parseJson(writeJson(rendered)), personId),
    code: result?.outcome === "failed" ? (result.code ?? "failed") : null,
  }));
  const failed = shown.find(({ code }) => code !== null)?.code ?? null;
  const reason = notRun?.outcome === "failed" ? notRun.code : end.outcome === "not_run" ? end.reason : failed;
  return { ends: reason == null ? "done" : "failed", why: reason ?? null, actions: shown };
}

/** Replaces the id of the person, which is another one for a person that the rehearsal creates. */
function replaceText(value: Json, id: string | null): Json {
  if (typeof value === "string") return id === null ? value : value.replaceAll(id, "per_…");
  if (Array.isArray(value)) return value.map((one) => replaceText(one, id));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaceText(one, id)]));
}

/** Describes how a result differs from the kept one, without a value of the request; null where it does not. */
function describeChange(before: CaseResult, now: CaseResult): string | null {
  if (writeCanonicalJson(before as Json) === writeCanonicalJson(now as Json)) return null;
  if (before.ends !== now.ends || before.why !== now.why)
    return `now ends ${now.ends}${now.why === null ? "" : ` (${now.why})`}`;
  const types = (result: CaseResult): string => result.actions.map(({ type }) => type).join(", ");
  if (types(before) !== types(now)) return `now runs other actions (${types(now)})`;
  const at = now.actions.findIndex(
    (action, index) =>
      writeCanonicalJson(action as Json) !== writeCanonicalJson(before.actions[index] as Json),
  );
  const field = findField(before.actions[at]?.rendered as Json, now.actions[at]?.rendered as Json);
  return `now has another value in actions.${at}${field}`;
}

/** Finds the first field that differs, as a path that begins with a dot. */
function findField(before: Json, now: Json): string {
  if (!isJsonObject(before) || !isJsonObject(now)) return "";
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [was, is] = [before[name] ?? null, now[name] ?? null];
    if (writeCanonicalJson(was) !== writeCanonicalJson(is)) return `.${name}${findField(was, is)}`;
  }
  return "";
}

const MAX_NAMED = 5;

function formatReport(items: CaseReport["items"]): string {
  const changed = items.filter(({ change }) => change !== null);
  const asBefore = items.filter(({ outcome }) => outcome === "as_before").length;
  const skipped = items.filter(({ outcome }) => outcome === "not_run").length;
  const head = `${items.length} ${items.length === 1 ? "case" : "cases"}`;
  const named = changed.slice(0, MAX_NAMED).map(({ name, change }) => `\`${name}\` ${change}`);
  const parts = [
    `${asBefore} as before`,
    ...named,
    ...(changed.length > MAX_NAMED ? [`${changed.length - MAX_NAMED} more changed`] : []),
    ...(skipped > 0 ? [`${skipped} not run`] : []),
  ];
  return `${head}: ${parts.join(", ")}.`;
}
