/**
 * Imports events that a provider lists but did not deliver. Each line is stored once, as if it had been received, or reported with its number. An
 * import into a receiver offers each line to the relays that follow it too, an import into a follower only to that one. A transaction stores a few
 * lines with their audit row, so that an interrupted import can be run again with the same file and stores nothing twice. An import takes no part of
 * the app's cap and does not affect the sender's health.
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
import { findDuplicate, insertEvent, type StoredPayload } from "../event/insert.ts";
import { findEventView } from "../event/view.ts";
import { evaluateLine, type ImportedEvent, type OpenLine, openLine } from "./import-line.ts";
import { type Line, STEP_BYTES, stepsOf } from "./import-step.ts";
import { makeEventPayload, requireReadable } from "./reading.ts";
import { explainToOwner } from "./rejection.ts";
import { type EarlierUse, findEarlierUse, type SignatureUse, spendSignature } from "./signature-memory.ts";

const OUTCOMES = ["new", "known", "ignored", "refused"] as const;

/** The result of a line at a relay; a dry run says what it would be. `ignored`: `when` does not match. */
const RESULT = {
  outcome: oneOf(OUTCOMES),
  /** The new event, or the known one. */
  eventId: orNull(Type.String()),
  /** The deduplication key, for a dry run in several batches; null where the line has none. */
  key: orNull(Type.String()),
  code: orNull(Type.String()),
  message: orNull(Type.String()),
};
const relayResult = fields({ relay: Type.String(), ...RESULT });
type RelayResult = Static<typeof relayResult>;

/** The result of a line. It is `new` if a relay takes it, else `refused`, `known` or `ignored`, whichever of these a relay says first in this order. */
const importLineView = fields({
  /** The number in the file, from 1. Empty lines are not reported. */
  line: Type.Integer(),
  ...RESULT,
  /** True if the sender's signature verified. */
  verified: Type.Boolean(),
  /** True if the event is treated as unsigned. */
  unsigned: Type.Boolean(),
  /** The result at the relay and at each that follows it; null if none follows it, or if no relay could read the line. */
  relays: orNull(Type.Array(relayResult)),
});
export type ImportLineView = Static<typeof importLineView>;

export const importView = fields({
  relay: Type.String(),
  /** The version of the relay's definition that evaluated the lines. */
  version: Type.Integer(),
  /** The relays that follow it, which evaluated the lines too, with their versions. */
  followers: Type.Array(fields({ relay: Type.String(), version: Type.Integer() })),
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
  /** The followers that the dry run evaluated, as `formatFollowers` writes them; null accepts any. */
  followers: string | null;
}

/** Writes followers with their versions, as in `archive@3,paid@1`, or `none`. */
export function formatFollowers(followers: ImportView["followers"]): string {
  if (followers.length === 0) return "none";
  return followers.map(({ relay, version }) => `${relay}@${version}`).join(",");
}

/**
 * Imports the lines of a batch; with `dryRun` only evaluates them. `way` is "test" for one line that was signed here, which goes to the named relay
 * only. Throws `not_found`, `invalid_input` where the relay is no receiver, `version_conflict`, `not_recorded` where a follower cannot be opened, and
 * the rejection of a receiver that rejects every request.
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
  const others = way === "test" ? [] : snapshot.followersOf(relay.id);
  requireReadable(others);
  const followers = others.map((one) => ({ relay: one.name, version: one.version }));
  if (batch.version !== null && batch.version !== version) throw rejectOldPlan(`The relay ${name} was saved`);
  if (batch.followers !== null && batch.followers !== formatFollowers(followers))
    throw rejectOldPlan(`The relays that follow ${name} were changed`);
  const takers = [relay, ...others] as const;
  const part = new Bun.CryptoHasher("sha256").update(batch.bytes).digest("hex");
  const file = batch.file ?? part;
  const lines: ImportLineView[] = [];
  let planned = new Planned();
  let nextLine = firstLine;
  for (const step of stepsOf(batch.bytes, firstLine, takers.length)) {
    const evaluated: Judged[] = [];
    for (const line of step) evaluated.push(await evaluateForAll(takers, line, change.nowMs, way));
    await yieldToEventLoop();
    const done = await store.write(
      origin,
      async (tx) => {
        // The transaction may run twice, so it changes only a copy.
        const after = planned.fork();
        const views = await storeLines(tx, evaluated, {
          planned: dryRun ? after : null,
          file,
          part,
          change,
          takers,
          way,
        });
        return { views, after };
      },
      change.environmentId,
    );
    planned = done.after;
    lines.push(...done.views);
    nextLine = (step.at(-1)?.line ?? nextLine) + 1;
    await yieldToEventLoop();
  }
  return { relay: name, version, followers, dryRun, nextLine, lines };
}

function rejectOldPlan(what: string): Refusal {
  return new Refusal(
    "version_conflict",
    `${what} since the plan was read, and may judge the events otherwise: read the plan again.`,
  );
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

/** A line with what each relay does with it, or the result of a line that no relay can read. */
type Judged = { line: number; open: OpenLine; parts: readonly Part[] } | ImportLineView;
/** The event that a relay takes, with its payload, or why it takes none. */
type Part = { relay: ReceiverRelay; event: ImportedEvent; payload: StoredPayload } | RelayResult;

const NOTHING = { eventId: null, key: null, code: null, message: null };

async function evaluateForAll(
  takers: readonly [ReceiverRelay, ...ReceiverRelay[]],
  { line, bytes }: Line,
  nowMs: number,
  way: EventWay,
): Promise<Judged> {
  const open = openLine(takers[0], bytes, nowMs);
  if (open.outcome !== "open")
    return { ...NOTHING, verified: false, unsigned: false, relays: null, line, ...open };
  const parts: Part[] = [];
  for (const relay of takers) {
    const event = evaluateLine(relay, open, nowMs, way);
    if (event.outcome !== "fits") parts.push({ ...NOTHING, relay: relay.name, ...event });
    else parts.push({ relay, event, payload: makeEventPayload(event.reading, open.parsed) });
    // Lets other work run after a large line, and after each relay of a line that many relays read.
    if (bytes.byteLength > STEP_BYTES / takers.length) await yieldToEventLoop();
  }
  return { line, open, parts };
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

  addEvent({ keys: [dedupe] }: ImportedEvent): void {
    this.#keys.add(hex(dedupe.hash));
  }

  addUse({ signedTextHash, bodyHash }: SignatureUse): void {
    this.#uses.set(hex(signedTextHash), hex(bodyHash));
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

interface Storing {
  /** The dry run; null stores the new lines. */
  planned: Planned | null;
  /** The file's hash, as the caller gave it. */
  file: string;
  /** The batch's hash. */
  part: string;
  change: Change;
  /** The relay, and those that follow it. */
  takers: readonly [ReceiverRelay, ...ReceiverRelay[]];
  way: EventWay;
}

/** Stores the new lines with one audit row, in one transaction. */
async function storeLines(
  tx: Writer,
  evaluated: readonly Judged[],
  storing: Storing,
): Promise<ImportLineView[]> {
  const { planned, file, part, change, takers, way } = storing;
  const [{ name }] = takers;
  const views: ImportLineView[] = [];
  for (const one of evaluated) views.push("parts" in one ? await storeLine(tx, one, storing) : one);
  const count = (outcome: ImportLineView["outcome"]): number =>
    views.filter((one) => one.outcome === outcome).length;
  const made = views.filter(({ outcome }) => outcome === "new");
  if (planned !== null || made.length === 0) return views;
  if (way === "test") {
    const after = { eventId: made[0]?.eventId ?? null };
    await writeAudit(tx, { ...change, action: "event.test_sent", target: relayTarget(name), after });
    return views;
  }
  await writeAudit(tx, {
    ...change,
    action: "events.imported",
    target: relayTarget(name),
    after: {
      file: `sha256:${file}`,
      batch: `sha256:${part}`,
      lines: { from: views[0]?.line ?? 0, to: views.at(-1)?.line ?? 0 },
      new: made.length,
      unsigned: made.filter(({ unsigned }) => unsigned).length,
      known: count("known"),
      ignored: count("ignored"),
      refused: count("refused"),
      ...(takers.length === 1 ? {} : { events: countEvents(made) }),
    },
  });
  return views;
}

/** Counts the new events of each relay. */
function countEvents(made: readonly ImportLineView[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { relay, outcome } of made.flatMap(({ relays }) => relays ?? []))
    if (outcome === "new") counts[relay] = (counts[relay] ?? 0) + 1;
  return counts;
}

/** Stores the event of each relay that takes the line, or finds why there is none. */
async function storeLine(
  tx: Writer,
  { line, open, parts }: Exclude<Judged, ImportLineView>,
  storing: Storing,
): Promise<ImportLineView> {
  const { planned, takers } = storing;
  const { oneTimeUse, verified, unsigned } = open;
  const shown = { ...NOTHING, line, verified, unsigned, relays: null };
  const isTaken = parts.some((part) => "event" in part);
  const earlier =
    oneTimeUse === null || !isTaken
      ? null
      : ((await findEarlierUse(tx, oneTimeUse)) ?? planned?.findUse(oneTimeUse) ?? null);
  if (earlier !== null && !earlier.sameBody) {
    const message = "its signature was accepted once before, with another body, and counts once.";
    return { ...shown, outcome: "refused", code: "bad_signature", message };
  }
  if (earlier !== null && !(await isStillOffered(tx, takers, earlier.eventId)))
    return { ...shown, outcome: "known", eventId: earlier.eventId };
  const results: RelayResult[] = [];
  for (const part of parts) results.push("event" in part ? await enterEvent(tx, part, open, storing) : part);
  if (oneTimeUse !== null && earlier === null && results.some(({ outcome }) => outcome === "new")) {
    planned?.addUse(oneTimeUse);
    if (planned === null)
      await spendSignature(tx, oneTimeUse, results.find(({ eventId }) => eventId)?.eventId ?? null);
  }
  const { relay: _, ...result } = firstOf(results);
  return { ...shown, ...result, relays: takers.length === 1 ? null : results };
}

/** The outcome of a line is the first of these that a relay has. */
const PRECEDENCE = ["new", "refused", "known", "ignored"] as const;

function firstOf(results: readonly RelayResult[]): RelayResult {
  for (const outcome of PRECEDENCE) {
    const found = results.find((one) => one.outcome === outcome);
    if (found !== undefined) return found;
  }
  throw new Error("A line has a result of each relay.");
}

/**
 * Reports whether relays may take a request whose signature was used before with the same body, because their own keys tell if they have it. The
 * keys exist while the first event does. Without a first event, only an import into one follower offers it again.
 */
async function isStillOffered(
  tx: Writer,
  [relay, ...followers]: Storing["takers"],
  firstId: string | null,
): Promise<boolean> {
  const isFollower = relay.receiver.source !== null;
  if (firstId === null) return isFollower;
  if (!isFollower && followers.length === 0) return false;
  return (await findEventView(tx, relay.environmentId, firstId)) !== null;
}

async function enterEvent(
  tx: Writer,
  { relay, event, payload }: Exclude<Part, RelayResult>,
  { unsigned, parsed }: OpenLine,
  { planned, change: { environmentId, nowMs }, way }: Storing,
): Promise<RelayResult> {
  const { keys, reading } = event;
  const [dedupe] = keys;
  const shown = { ...NOTHING, relay: relay.name, key: hex(dedupe.hash) };
  for (const key of keys) {
    const first = await findDuplicate(tx, key);
    if (first !== null) return { ...shown, outcome: "known", eventId: first.id };
  }
  if (planned?.holds(event) === true) return { ...shown, outcome: "known" };
  const address = Object.hasOwn(reading.mapped, "person_email") ? reading.mapped.person_email : null;
  if (typeof address === "string" && address !== "") {
    const digest = relay.digestAddress(address);
    if (await isErasedAddress(tx, environmentId, digest, 0)) {
      const message =
        "its person was erased, and an older event never restores a person; do its work by hand if the person registered again.";
      return { ...shown, outcome: "refused", code: "person_erased", message };
    }
  }
  if (planned !== null) {
    planned.addEvent(event);
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
  return { ...shown, outcome: "new", eventId: id };
}
