/**
 * Imports events that a provider lists but did not deliver. Each line is stored once, as if it had been received, or reported with its number. A
 * transaction stores a few lines with their audit row, so that an interrupted import can be run again with the same file and stores nothing twice.
 * An import takes no part of the app's cap and does not affect the sender's health.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull } from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { ClosedReason } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import { rejectUnknownRelay, relayTarget } from "../../rules/relay/relay.ts";
import { isErasedAddress } from "../../shop/people/person-erase.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Origin, Store, Writer } from "../../store/port.ts";
import type { EventWay } from "../event/event.ts";
import { findDuplicate, insertEvent, makeReceiverPayload, type StoredPayload } from "../event/insert.ts";
import { evaluateLine, type ImportedEvent } from "./import-line.ts";
import { textOf } from "./ingest.ts";
import { explainToOwner } from "./rejection.ts";
import { formatMissingEventId } from "./request.ts";
import { type EarlierUse, findEarlierUse, type SignatureUse, spendSignature } from "./signature-memory.ts";

/** The most lines of one batch, which is one request. */
export const MAX_IMPORT_LINES = 1_000;
/** The lines of one transaction, which takes some milliseconds. */
const STEP_LINES = 32;
const STEP_BYTES = 64 * 1024;

const OUTCOMES = ["new", "known", "ignored", "refused"] as const;

/** The result of a line; a dry run says what it would be. `ignored`: `when` does not match. */
const importLineView = fields({
  /** The number in the file, from 1. Empty lines are not reported. */
  line: Type.Integer(),
  outcome: oneOf(OUTCOMES),
  /** The new event, or the known one. */
  eventId: orNull(Type.String()),
  /** The deduplication key, for a dry run in several batches; null where the line has none. */
  key: orNull(Type.String()),
  /** True if the sender's signature verified. */
  verified: Type.Boolean(),
  /** True if the event is treated as unsigned. */
  unsigned: Type.Boolean(),
  code: orNull(Type.String()),
  message: orNull(Type.String()),
});
export type ImportLineView = Static<typeof importLineView>;

export const importView = fields({
  relay: Type.String(),
  /** The version of the relay's definition that evaluated the lines. */
  version: Type.Integer(),
  dryRun: Type.Boolean(),
  /** The number of the line after the batch. */
  nextLine: Type.Integer(),
  lines: Type.Array(importLineView),
});
export type ImportView = Static<typeof importView>;

interface ImportBatch {
  /** JSON lines. */
  bytes: Uint8Array;
  /** The number of the batch's first line in the file. */
  firstLine: number;
  /** The SHA-256 of the file in hex; null where the batch is the file. */
  file: string | null;
  dryRun: boolean;
  /** The version that the dry run evaluated; null accepts any. */
  version: number | null;
}

/**
 * Imports the lines of a batch; with `dryRun` only evaluates them. `way` is "test" for one line that was signed here. Throws `not_found`,
 * `invalid_input` where the relay is no receiver, `version_conflict`, and the rejection of a receiver that rejects every request.
 */
export async function importEvents(
  { store, snapshot, origin }: { store: Pick<Store, "write">; snapshot: Snapshot; origin: Origin },
  name: string,
  batch: ImportBatch,
  change: Change,
  way: EventWay = "import",
): Promise<ImportView> {
  const { dryRun, firstLine } = batch;
  const relay = requireOpenReceiver(snapshot, change.environmentId, name);
  const { version } = relay;
  if (batch.version !== null && batch.version !== version)
    throw new Refusal(
      "version_conflict",
      `The relay ${name} was saved since the plan was read, and it may judge the events otherwise: read the plan again.`,
    );
  const part = new Bun.CryptoHasher("sha256").update(batch.bytes).digest("hex");
  const file = batch.file ?? part;
  const lines: ImportLineView[] = [];
  let planned = new Planned();
  let nextLine = firstLine;
  for (const step of stepsOf(batch.bytes, firstLine)) {
    const judged: Judged[] = [];
    for (const { line, bytes } of step) {
      judged.push(judge(relay, line, bytes, change.nowMs, way));
      // Lets other work run after a large line.
      if (bytes.byteLength > STEP_BYTES) await yieldToEventLoop();
    }
    await yieldToEventLoop();
    const done = await store.write(origin, async (tx) => {
      // The transaction may run twice, so it changes only a copy.
      const after = planned.fork();
      const told = await enter(tx, judged, {
        planned: dryRun ? after : null,
        file,
        part,
        change,
        relay,
        way,
      });
      return { told, after };
    });
    planned = done.after;
    lines.push(...done.told);
    nextLine = (step.at(-1)?.line ?? nextLine) + 1;
    await yieldToEventLoop();
  }
  return { relay: name, version, dryRun, nextLine, lines };
}

/** Finds the receiver. Throws where it accepts no event from any sender, because an import must not bypass that. */
function requireOpenReceiver(snapshot: Snapshot, environmentId: number, name: string): ReceiverRelay {
  const relay = snapshot.relays.find((one) => one.environmentId === environmentId && one.name === name);
  if (relay === undefined) throw rejectUnknownRelay(name);
  if (!isReceiver(relay)) {
    const { kind } = relay.definition.trigger;
    throw new Refusal(
      "invalid_input",
      `The relay ${name} waits for a ${kind}, not for a request: events can be imported only into a receiver.`,
    );
  }
  const { closed } = relay.receiver;
  if (closed === null) return relay;
  const { cause } = explainToOwner(relay, null);
  throw new Refusal(
    CODES[closed] ?? "invalid_input",
    `Nothing can be imported into ${name}, which rejects every request: ${cause}.`,
  );
}

const CODES: Partial<Record<ClosedReason, "scheme_renamed" | "unsigned_event">> = {
  scheme_renamed: "scheme_renamed",
  relay_unsigned_event: "unsigned_event",
};

function isReceiver(relay: LiveRelay): relay is ReceiverRelay {
  return relay.receiver !== null && relay.definition.trigger.kind === "receiver";
}

interface Line {
  line: number;
  bytes: Uint8Array;
}

const LF = 0x0a;
const CR = 0x0d;
const BOM = [0xef, 0xbb, 0xbf];

/** Splits the bytes into steps of non-empty lines without their line ends. Throws for a batch of too many lines. */
function* stepsOf(bytes: Uint8Array, firstLine: number): Generator<Line[]> {
  let step: Line[] = [];
  let held = 0;
  let [line, start] = [firstLine, BOM.every((byte, at) => bytes[at] === byte) ? BOM.length : 0];
  for (; start < bytes.byteLength; line++) {
    if (line - firstLine >= MAX_IMPORT_LINES)
      throw new Refusal(
        "body_too_large",
        `A batch has at most ${MAX_IMPORT_LINES.toLocaleString("en")} lines: send the rest in another.`,
      );
    const found = bytes.indexOf(LF, start);
    const end = found < 0 ? bytes.byteLength : found;
    const one = bytes.subarray(start, bytes[end - 1] === CR && end > start ? end - 1 : end);
    start = end + 1;
    if (one.every((byte) => byte === 0x20 || byte === 0x09)) continue;
    if (step.length === STEP_LINES || (step.length > 0 && held + one.byteLength > STEP_BYTES)) {
      yield step;
      [step, held] = [[], 0];
    }
    step.push({ line, bytes: one });
    held += one.byteLength;
  }
  if (step.length > 0) yield step;
}

/** A line that can be stored with its payload, or the result of a line that cannot. */
type Judged = { line: number; event: ImportedEvent; payload: StoredPayload } | ImportLineView;

const NOTHING = { eventId: null, key: null, verified: false, unsigned: false, code: null, message: null };

function judge(relay: ReceiverRelay, line: number, bytes: Uint8Array, nowMs: number, way: EventWay): Judged {
  const judged = evaluateLine(relay, bytes, nowMs, way);
  if (judged.outcome !== "fits") return { ...NOTHING, line, ...judged };
  const { event } = judged;
  const made = makeReceiverPayload(textOf(event.parsed), event.mapped);
  const unnamed = formatMissingEventId(relay, event.mapped, event.eventId);
  const payload = unnamed === null ? made : { ...made, warnings: [unnamed, ...made.warnings] };
  return { line, event, payload };
}

/** The lines that a dry run would have stored so far. */
class Planned {
  readonly #keys = new Set<string>();
  /** Body hashes by the single-use signature, in hex. */
  readonly #uses = new Map<string, string>();

  fork(): Planned {
    const copy = new Planned();
    for (const key of this.#keys) copy.#keys.add(key);
    for (const [signed, body] of this.#uses) copy.#uses.set(signed, body);
    return copy;
  }

  add({ keys: [dedupe], once }: ImportedEvent): void {
    this.#keys.add(hex(dedupe.hash));
    if (once !== null) this.#uses.set(hex(once.signedTextHash), hex(once.bodyHash));
  }

  holds({ keys }: ImportedEvent): boolean {
    return keys.some(({ hash }) => this.#keys.has(hex(hash)));
  }

  findUse({ signedTextHash, bodyHash }: SignatureUse): EarlierUse | null {
    const body = this.#uses.get(hex(signedTextHash));
    if (body === undefined) return null;
    return body === hex(bodyHash) ? { sameBody: true, eventId: null } : { sameBody: false };
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

interface Entering {
  /** The dry run; null stores the new lines. */
  planned: Planned | null;
  /** The file's hash, as the caller gave it. */
  file: string;
  /** The batch's hash. */
  part: string;
  change: Change;
  relay: ReceiverRelay;
  way: EventWay;
}

/** Stores the new lines with one audit row, in one transaction. */
async function enter(tx: Writer, judged: readonly Judged[], entering: Entering): Promise<ImportLineView[]> {
  const { planned, file, part, change, relay, way } = entering;
  const told: ImportLineView[] = [];
  for (const one of judged) told.push("outcome" in one ? one : await enterOne(tx, one, entering));
  const count = (outcome: ImportLineView["outcome"]): number =>
    told.filter((one) => one.outcome === outcome).length;
  const made = told.filter(({ outcome }) => outcome === "new");
  if (planned !== null || made.length === 0) return told;
  if (way === "test") {
    const after = { eventId: made[0]?.eventId ?? null };
    await writeAudit(tx, { ...change, action: "event.test_sent", target: relayTarget(relay.name), after });
    return told;
  }
  await writeAudit(tx, {
    ...change,
    action: "events.imported",
    target: relayTarget(relay.name),
    after: {
      file: `sha256:${file}`,
      batch: `sha256:${part}`,
      lines: { from: told[0]?.line ?? 0, to: told.at(-1)?.line ?? 0 },
      new: made.length,
      unsigned: made.filter(({ unsigned }) => unsigned).length,
      known: count("known"),
      ignored: count("ignored"),
      refused: count("refused"),
    },
  });
  return told;
}

async function enterOne(
  tx: Writer,
  { line, event, payload }: Exclude<Judged, ImportLineView>,
  { planned, change: { environmentId, nowMs }, relay, way }: Entering,
): Promise<ImportLineView> {
  const { keys, once, verified, unsigned, mapped, parsed } = event;
  const [dedupe] = keys;
  const shown = { ...NOTHING, line, key: hex(dedupe.hash), verified, unsigned };
  const earlier = once === null ? null : ((await findEarlierUse(tx, once)) ?? planned?.findUse(once) ?? null);
  if (earlier !== null) {
    // The use is the source's. The follower's own keys decide if it has the event.
    if (earlier.sameBody && relay.receiver.source === null)
      return { ...shown, outcome: "known", eventId: earlier.eventId };
    if (!earlier.sameBody) {
      const message = "its signature was accepted once before, with another body, and counts once.";
      return { ...shown, outcome: "refused", code: "bad_signature", message };
    }
  }
  for (const key of keys) {
    const first = await findDuplicate(tx, key);
    if (first !== null) return { ...shown, outcome: "known", eventId: first.id };
  }
  if (planned?.holds(event) === true) return { ...shown, outcome: "known" };
  const address = Object.hasOwn(mapped, "person_email") ? mapped.person_email : null;
  if (typeof address === "string" && address !== "") {
    const digest = relay.digestAddress(address);
    if (await isErasedAddress(tx, environmentId, digest, 0)) {
      const message =
        "its person was erased, and an older event never restores a person; do its work by hand if the person registered again.";
      return { ...shown, outcome: "refused", code: "person_erased", message };
    }
  }
  if (planned !== null) {
    planned.add(event);
    return { ...shown, outcome: "new" };
  }
  const { id } = await insertEvent(tx, {
    environmentId,
    relayId: relay.id,
    relayKey: relay.key,
    nameKey: relay.nameKey,
    trigger: "receiver",
    payload,
    mapVersion: relay.version,
    unsigned,
    form: parsed.form !== null,
    dedupe,
    nowMs,
    source: way,
  });
  if (once !== null && earlier === null) await spendSignature(tx, once, id);
  return { ...shown, outcome: "new", eventId: id };
}
