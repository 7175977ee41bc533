/**
 * Finds the faults of stored relays and records them as problems. A save warns of everything that the relay does not fit in the catalog. This file
 * covers relays that watch a collection, and relays that write what others watch; relay-reference.ts covers the other names. It also raises and
 * clears a relay's problems and never changes the relay. Causes are a change of the catalog, or today's rules that an older row breaks. While a rule
 * is broken, the receiver rejects every event. Source: the specification's "Unsigned-event rule" and "Secrets", public key.
 */

import { isKeyText } from "../../base/key-text.ts";
import type { Warning } from "../../base/refusal.ts";
import { joinField, showNames, showText } from "../../base/shape.ts";
import { findNearestName, shortenToLine } from "../../base/text.ts";
import { clearProblem, hasProblem, raiseProblem } from "../../platform/audit/problem.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { listTemplateUses } from "../../platform/template/template.ts";
import type { CollectionDefinition } from "../../shop/records/collection-definition.ts";
import { checkFieldValue } from "../../shop/records/record-data.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { DataChangeTrigger } from "../trigger/data-change.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Definition } from "./definition-shape.ts";
import { RELAY, type RelayRow, relayTarget, type SecretKind } from "./relay.ts";
import {
  type CatalogLookup,
  checkWrites,
  listMissingWarnings,
  listWriteWarnings,
  MAX_NAMED,
  makeCatalogLookup,
} from "./relay-reference.ts";
import { describeMissingSecret, openReceiverSecret } from "./relay-secret.ts";
import { listOverlapWarnings, sellsOnCall } from "./selling-overlap.ts";
import { findProcessorDigest } from "./shared-secret.ts";
import { withSourceScheme } from "./source.ts";
import { arrivesUnsigned, rejectsUnsigned } from "./unsigned-rule.ts";

const MISFIT = "relay_misfit" as const;
const MAX_MESSAGE = 1_000;

export interface Edited {
  environmentId: number;
  nowMs: number;
}

/**
 * Lists a warning for each name that is missing or sold elsewhere, each record that its collection would reject, and each condition that
 * no record of a watched collection can meet.
 */
export async function listReferenceWarnings(
  lookup: CatalogLookup,
  definition: Definition,
): Promise<Warning[]> {
  return [
    ...(await listMissingWarnings(lookup, definition)),
    ...(await listWriteWarnings(lookup, definition)),
    ...(await listWatchWarnings(lookup, definition)),
    ...(await listWatcherWarnings(lookup, definition)),
    ...(sellsOnCall(definition) ? listOverlapWarnings(definition, await lookup.listSellers()) : []),
  ];
}

/**
 * Lists what a change of the catalog can break: the warnings of a save without those about other relays, and what a save would reject.
 */
export async function listMisfitWarnings(lookup: CatalogLookup, definition: Definition): Promise<Warning[]> {
  const refused = await checkWrites(lookup, definition);
  return [
    ...(await listMissingWarnings(lookup, definition)),
    ...refused.map((problem): Warning => ({ code: "record_does_not_fit", ...problem })),
    ...(await listWriteWarnings(lookup, definition)),
    ...(await listWatchWarnings(lookup, definition)),
  ];
}

/** Updates the relay's misfit problem after a save, if there is one. */
export async function refreshMisfitProblem(
  tx: Writer,
  edited: Edited,
  definition: Definition,
): Promise<void> {
  const { environmentId } = edited;
  const key = { environmentId, code: MISFIT, target: relayTarget(definition.name) };
  if (!(await hasProblem(tx, key))) return;
  const misfits = await listMisfitWarnings(makeCatalogLookup(tx, environmentId), definition);
  await updateMisfitProblem(tx, edited, definition.name, misfits, true);
}

/** `raises`: whether to open a new problem. An open problem is updated in any case. */
export async function updateMisfitProblem(
  tx: Writer,
  { environmentId, nowMs }: Edited,
  name: string,
  misfits: readonly Warning[],
  raises: boolean,
): Promise<void> {
  const key = { environmentId, code: MISFIT, target: relayTarget(name) };
  if (misfits.length === 0) {
    await clearProblem(tx, { ...key, nowMs });
    return;
  }
  if (!raises && !(await hasProblem(tx, key))) return;
  const what = misfits.map(({ message }) => message).join(" ");
  const message = shortenToLine(`A change of the catalog broke this relay. ${what}`, MAX_MESSAGE);
  await raiseProblem(tx, { ...key, message, nowMs });
}

/** Lists warnings for a relay that watches a collection. */
async function listWatchWarnings(lookup: CatalogLookup, definition: Definition): Promise<Warning[]> {
  const { trigger } = definition;
  if (trigger.kind !== "data_change") return [];
  const collection = await lookup.findCollection(trigger.collection);
  if (collection === null) return [await makeMissingCollectionWarning(lookup, trigger.collection)];
  return [
    ...listFilterWarnings(trigger.where ?? {}, collection),
    ...listFieldWarnings(definition, collection),
  ];
}

async function makeMissingCollectionWarning(lookup: CatalogLookup, name: string): Promise<Warning> {
  const field = "trigger.collection";
  const remedy = lookup.formatRemedy("collection");
  const near = findNearestName(name, await lookup.listNames("collection"));
  const todo =
    near === null ? `${remedy}, or name one that exists` : `did you mean ${near}? Otherwise ${remedy}`;
  const message = `\`${field}\`: there is no collection named ${name} ${lookup.place} yet, so no record changes and this relay never runs: ${todo}.`;
  return { code: "reference_missing", field, message };
}

function listFilterWarnings(
  where: NonNullable<DataChangeTrigger["where"]>,
  { name, fields }: CollectionDefinition,
): Warning[] {
  return Object.entries(where).flatMap(([key, wanted]): Warning[] => {
    const field = joinField("trigger.where", key);
    const warn = (why: string): Warning[] => [
      { code: "where_never_matches", field, message: `\`${field}\` ${why}` },
    ];
    const rule = fields.get(key);
    if (rule === undefined) {
      return warn(
        `is not a field of the collection ${name}, so no record matches and this relay never runs: ${formatNearest(key, fields)}.`,
      );
    }
    const refused = checkFieldValue(rule, wanted);
    if (refused === null) return [];
    return warn(
      `${refused} in the collection ${name}; otherwise no record matches and this relay never runs.`,
    );
  });
}

/** Warns of templates that read a missing field, or a path below a field that has nothing below it. */
function listFieldWarnings({ actions }: Definition, { name, fields }: CollectionDefinition): Warning[] {
  return listTemplateUses(actions, "actions").flatMap(({ field, path }): Warning[] => {
    const [root, part, key, below] = path.split(".");
    if ((root !== "record" && root !== "previous") || part !== "data" || key === undefined) return [];
    const rule = fields.get(key);
    const start = `\`${field}\` contains ${showText(`{{${path}}}`)}, which resolves to nothing`;
    const warn = (why: string): Warning[] => [
      { code: "path_names_nothing", field, message: `${start}: ${why}.` },
    ];
    if (rule === undefined)
      return warn(`${key} is not a field of the collection ${name}: ${formatNearest(key, fields)}`);
    if (below === undefined || rule.type === "json") return [];
    return warn(`${key} is a ${rule.type} field of the collection ${name} and has no fields below it`);
  });
}

function formatNearest(key: string, fields: CollectionDefinition["fields"]): string {
  const names = [...fields.keys()];
  const near = findNearestName(key, names);
  if (near !== null) return `perhaps you meant ${near}`;
  return names.length === 0 ? "it has none" : `it has ${showNames(names)}`;
}

/** Warns of both sides: what others write that this relay watches, and who watches what this relay writes. */
async function listWatcherWarnings(
  lookup: CatalogLookup,
  { name, trigger, actions }: Definition,
): Promise<Warning[]> {
  const warnings: Warning[] = [];
  const others = (names: readonly string[]) => names.filter((other) => other !== name);
  if (trigger.kind === "data_change" && trigger.on.includes("created")) {
    const writers = others(await lookup.listWriters(trigger.collection));
    if (writers.length > 0) {
      const [what, possessive] =
        writers.length === 1
          ? [`the relay ${formatRelays(writers)} writes`, "its"]
          : [`the relays ${formatRelays(writers)} write`, "their"];
      warnings.push(
        makeUnseenWarning(
          "trigger.collection",
          `${what} ${trigger.collection} too, and a record that a relay writes never starts a relay: this relay does not see ${possessive} records, so add these actions there as well.`,
        ),
      );
    }
  }
  for (const [index, action] of actions.entries()) {
    if (action.type !== "write_record" || typeof action.collection !== "string") continue;
    const { collection } = action;
    const watchers = others(await lookup.listWatchers(collection));
    if (watchers.length === 0) continue;
    const names = formatRelays(watchers);
    const what = watchers.length === 1 ? `the relay ${names} watches` : `the relays ${names} watch`;
    warnings.push(
      makeUnseenWarning(
        `actions.${index}.collection`,
        `${what} ${collection}, but a record that a relay writes never starts a relay: add the actions that should follow to this relay.`,
      ),
    );
  }
  return warnings;
}

/** The list is limited, so there may be more relays. */
function formatRelays(names: readonly string[]): string {
  return showNames(names.length < MAX_NAMED - 1 ? names : [...names.slice(0, MAX_NAMED - 2), "others"]);
}

function makeUnseenWarning(field: string, why: string): Warning {
  return { code: "relay_write_unseen", field, message: `\`${field}\`: ${why}` };
}

/** Reports whether the relay writes records into the collection. */
export function writesTo({ actions }: Definition, collection: string): boolean {
  return actions.some((action) => action.type === "write_record" && action.collection === collection);
}

/** Reports whether a new record of the collection starts the relay. */
export function startsOnCreated({ trigger }: Definition, collection: string): boolean {
  return (
    trigger.kind === "data_change" && trigger.collection === collection && trigger.on.includes("created")
  );
}

const RULE_CODES = ["relay_unsigned_event", "relay_key_as_secret", "secret_missing"] as const;

interface RelayProblem {
  code: (typeof RULE_CODES)[number];
  message: string;
}

/** The stored secret of a relay. */
interface StoredSecret {
  /** True if the relay follows a receiver, whose secret verifies its requests. */
  follows: boolean;
  kind: SecretKind;
  /** The unsealed text; without it (null), a key stored as a pasted secret is not found. */
  text: string | null;
  /** True if the environment has a processor secret. */
  hasProcessorSecret: boolean;
}

/** Lists the rules that a relay breaks with this definition and stored secret. */
export function listRelayProblems(definition: Definition, secret: StoredSecret): RelayProblem[] {
  const problems: RelayProblem[] = [];
  if (arrivesUnsigned(definition.trigger) && rejectsUnsigned(definition)) {
    problems.push({
      code: "relay_unsigned_event",
      message:
        "The sender does not sign the event, and the relay acts on people, so every event is refused. Remove those actions and person_email from the map, or set trigger.trustUnsignedEvents to accept the risk.",
    });
  }
  if (!secret.follows && holdsKeyAsSecret(definition, secret)) {
    problems.push({
      code: "relay_key_as_secret",
      message:
        "The recipe checks a shared secret but a public key is stored, so every event is refused: paste the sender's secret, or change the recipe's algorithm to the key's.",
    });
  }
  const missing = secret.follows
    ? null
    : describeMissingSecret(definition, secret.kind, secret.hasProcessorSecret);
  if (missing !== null) problems.push({ code: "secret_missing", message: missing });
  return problems;
}

/** Raises problems for the rules that the row breaks, which it returns, and clears the others. A new relay has nothing to clear. */
export async function updateRuleProblems(
  tx: Writer,
  row: RelayRow,
  sealer: Sealer,
  nowMs: number,
  isNew = false,
): Promise<readonly RelayProblem[]> {
  const secret = await readStoredSecret(tx, row, openReceiverSecret(row, sealer));
  const definition = await withSourceScheme(tx, row.environmentId, row.definition, row.sourceName);
  return await writeRuleProblems(tx, row, listRelayProblems(definition, secret), nowMs, isNew);
}

async function readStoredSecret(tx: Reader, row: RelayRow, text: string | null): Promise<StoredSecret> {
  const { secretKind: kind, environmentId } = row;
  const follows = row.sourceName !== null;
  const hasProcessorSecret = kind === "processor" && (await findProcessorDigest(tx, environmentId)) !== null;
  return { follows, kind, text, hasProcessorSecret };
}

async function writeRuleProblems(
  tx: Writer,
  { environmentId, name }: RelayRow,
  found: readonly RelayProblem[],
  nowMs: number,
  isNew: boolean,
): Promise<readonly RelayProblem[]> {
  for (const code of RULE_CODES) {
    const key = { environmentId, code, target: relayTarget(name) };
    const problem = found.find((candidate) => candidate.code === code);
    if (problem !== undefined) await raiseProblem(tx, { ...key, message: problem.message, nowMs });
    else if (!isNew) await clearProblem(tx, { ...key, nowMs });
  }
  return found;
}

/**
 * Updates the problems of every relay at the start, when older rows meet newer rules. A relay that cannot be read keeps its problems:
 * opening it closes it and logs why.
 */
export async function updateAllRuleProblems(tx: Writer, sealer: Sealer, nowMs: number): Promise<void> {
  const relays = await tx.all<object>(`SELECT ${RELAY.columns} FROM relay ORDER BY id`);
  await updateProblemsOf(tx, relays, (row) => openReceiverSecret(row, sealer), nowMs);
}

/** Updates the problems of the relays that verify with the environment's processor secret, after it changed. */
export async function updateProcessorProblems(
  tx: Writer,
  environmentId: number,
  nowMs: number,
): Promise<void> {
  const sql = `SELECT ${RELAY.columns} FROM relay WHERE environment_id = ?1 AND secret_kind = 'processor' ORDER BY id`;
  // Such a relay stores no secret itself.
  await updateProblemsOf(tx, await tx.all<object>(sql, environmentId), () => null, nowMs);
}

async function updateProblemsOf(
  tx: Writer,
  relays: readonly object[],
  open: (row: RelayRow) => string | null,
  nowMs: number,
): Promise<void> {
  for (const stored of relays) {
    const row = tryRead(() => RELAY.read(stored));
    if (row === null) continue;
    const secret = await readStoredSecret(tx, row, open(row));
    const definition = await withSourceScheme(tx, row.environmentId, row.definition, row.sourceName);
    const found = tryRead(() => listRelayProblems(definition, secret));
    if (found !== null) await writeRuleProblems(tx, row, found, nowMs, false);
  }
}

/** Returns null for a row of another version that these rules cannot read. */
function tryRead<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function holdsKeyAsSecret({ trigger }: Definition, { kind, text }: StoredSecret): boolean {
  if (trigger.kind !== "receiver") return false;
  const scheme = bindScheme(trigger.verify);
  if (scheme?.secretNeed() !== "shared") return false;
  if (kind === "public_key") return true;
  return scheme.name !== "shared_token" && text !== null && isKeyText(text);
}
