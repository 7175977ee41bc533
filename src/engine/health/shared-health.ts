/**
 * How relays are doing where nodes serve them side by side: each sees its own calls and runs, and the row is what all of them saw. What one saw
 * since it last wrote is put into what the others wrote meanwhile, in the transaction that writes it, and is judged after that.
 */
import { MINUTE_MS } from "../../base/limit.ts";
import type { SecretUse } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  HEALTH,
  type HealthCode,
  type Kept,
  type KeptRun,
  type Known,
  type RowHealth,
  type RunCode,
} from "./condition.ts";
import { Health, keepOf, knownOf, rowOf, type WriteRows } from "./health.ts";
import { RUN_CODES } from "./problem.ts";

/** A row that differs from what is known in the time of its last good call alone is written once in so long. */
const ACCEPTED_EVERY_MS = MINUTE_MS;

type Ends = Partial<Record<RunCode, number>>;

/** Of one relay, beside what is known of it. */
interface Part {
  /** The row as it was when it was read or written last. */
  base: RowHealth;
  /** When runs were ended here since, by the wall clock: another node's run may be over by that. */
  ends: Ends;
  /** Runs that grew here, to be judged once the others' part of them is known. */
  grown: Map<RunCode, LiveRelay>;
  use: SecretUse | null;
}

/** What this node is about to put into the row. */
interface Share {
  base: RowHealth;
  mine: RowHealth;
  ends: Ends;
}

export class SharedHealth extends Health {
  readonly #parts = new WeakMap<Known, Part>();
  #unlisten: () => void = () => undefined;

  override async start(isOver: Parameters<Health["start"]>[0]): Promise<void> {
    // Another node may raise or clear a problem: what stands there is over by what happens here.
    const adopt = (): void => void this.problems.load({ adopts: true }).catch(() => undefined);
    this.#unlisten = this.deps.store.listen(adopt, ["problem"]);
    await super.start(isOver);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#unlisten();
  }

  override accept(relay: LiveRelay, nowMs: number): void {
    const known = this.of(relay.id);
    this.#partOf(known).use = relay.receiver?.overlap ?? null;
    this.note(known);
    super.accept(relay, nowMs);
  }

  override async tend(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const { id } of snapshot.relays) this.note(this.of(id));
    return await super.tend(snapshot);
  }

  protected override begin(relayId: string, row: RowOf<typeof HEALTH> | null): Known {
    const known = super.begin(relayId, row);
    this.#parts.set(known, { base: copyHealth(known), ends: {}, grown: new Map(), use: null });
    return known;
  }

  protected override grew(known: Known, relay: LiveRelay, code: RunCode): void {
    this.#partOf(known).grown.set(code, relay);
  }

  protected override end(relay: LiveRelay, code: RunCode): void {
    const known = this.of(relay.id);
    // Another node may know of one.
    this.drop(known, code, this.deps.clock.now());
    this.note(known);
    super.end(relay, code);
  }

  protected override drop(known: Known, code: RunCode, endedAt: number): void {
    super.drop(known, code, endedAt);
    this.#partOf(known).ends[code] = endedAt;
  }

  protected override note(known: Known): void {
    super.note(known, true);
  }

  protected override async save(noted: readonly Known[], write: WriteRows): Promise<() => void> {
    const shares = noted.map((known) => ({ known, share: this.#takeShare(known) }));
    let rows = new Map<string, RowHealth>();
    try {
      await write(async (tx) => {
        rows = await joinRows(tx, shares);
      });
    } catch (error) {
      // What was taken happened since the last time still.
      for (const { known, share } of shares) {
        const part = this.#partOf(known);
        part.ends = { ...share.ends, ...part.ends };
      }
      throw error;
    }
    return () => {
      for (const { known, share } of shares) {
        const row = rows.get(known.relayId);
        if (row !== undefined) this.#goOnFrom(known, row, share);
      }
    };
  }

  /** Takes what happened here since the last time. */
  #takeShare(known: Known): Share {
    const part = this.#partOf(known);
    const { base, ends, use } = part;
    const mine = copyHealth(known);
    if (use !== null) mine.kept.use = { ...use };
    part.ends = {};
    return { base, mine, ends };
  }

  /** Goes on from the row that all nodes see, with what happened here meanwhile. */
  #goOnFrom(known: Known, row: RowHealth, { mine }: Share): void {
    const part = this.#partOf(known);
    const joined = joinHealth({ base: mine, mine: known, ends: part.ends }, row);
    for (const code of RUN_CODES) {
      const [was, run, seen] = [known.kept.runs[code], joined.kept.runs[code], known.seen[code]];
      if (run === undefined) delete known.seen[code];
      else
        known.seen[code] = {
          sinceMs: seen !== undefined && was?.since === run.since ? seen.sinceMs : this.#on(run.since),
          atMs: seen !== undefined && was?.at === run.at ? seen.atMs : this.#on(run.at),
          why: seen?.why ?? null,
        };
    }
    if (joined.kept.runs.relay_refusing === undefined) known.found = null;
    Object.assign(known, joined, { storedAcceptedAt: row.acceptedAt });
    part.base = copyHealth(row);
    const grown = [...part.grown];
    part.grown.clear();
    for (const [code, relay] of grown) this.judge(relay, code);
  }

  /** Where a time of the wall clock lies on the one that nobody sets. */
  #on(wallMs: number): number {
    const { clock } = this.deps;
    return clock.monotonicMs() - Math.max(0, clock.now() - wallMs);
  }

  #partOf(known: Known): Part {
    const part = this.#parts.get(known);
    if (part === undefined) throw new Error("A relay is known without the part that nodes share.");
    return part;
  }
}

/** Puts the shares into the rows as they are by now; answers those. */
async function joinRows(
  tx: Writer,
  shares: readonly { known: Known; share: Share }[],
): Promise<Map<string, RowHealth>> {
  const ids = JSON.stringify(shares.map(({ known }) => known.relayId));
  const stored = await HEALTH.all(tx, "WHERE id IN (SELECT value FROM json_each($ids))", { ids });
  const rows = new Map<string, RowHealth>(stored.map((row) => [row.id, knownOf(row.id, row)]));
  for (const { known, share } of shares) {
    const before = rows.get(known.relayId);
    const after = before === undefined ? undefined : joinHealth(share, before);
    if (before === undefined || after === undefined || !isNews(before, after)) continue;
    await HEALTH.update(tx, rowOf(after));
    rows.set(known.relayId, after);
  }
  return rows;
}

function copyHealth({ relayId, kept, refusedAt, acceptedAt }: RowHealth): RowHealth {
  return { relayId, kept: { ...kept, runs: { ...kept.runs } }, refusedAt, acceptedAt };
}

/** Whether the row is to be written for what is new in it. */
function isNews(before: RowHealth, after: RowHealth): boolean {
  const isSame = Bun.deepEquals(before.kept, after.kept) && before.refusedAt === after.refusedAt;
  if (!isSame || after.acceptedAt === null || before.acceptedAt === null)
    return !isSame || before.acceptedAt !== after.acceptedAt;
  return after.acceptedAt - before.acceptedAt >= ACCEPTED_EVERY_MS;
}

/** What this node saw put into what the row says by now. A save of the definition begins anew, whichever node heard of it first. */
function joinHealth({ base, mine, ends }: Share, theirs: RowHealth): RowHealth {
  const version = Math.max(mine.kept.version, theirs.kept.version);
  const ofVersion = ({ kept }: RowHealth): Kept => (kept.version === version ? kept : keepOf(version, kept));
  const [before, own, there] = [ofVersion(base), ofVersion(mine), ofVersion(theirs)];
  const use = joinUses(own.use, there.use);
  const kept: Kept = {
    version,
    matched: own.matched || there.matched,
    found: own.found || there.found,
    usual: Math.max(own.usual, there.usual),
    uncalledTold: own.uncalledTold || there.uncalledTold,
    runs: {},
    ...(use === undefined ? {} : { use }),
  };
  for (const code of RUN_CODES) {
    const accepts = code === "relay_refusing";
    const all = there.runs[code];
    const left = partAfter(all, latest(ends[code] ?? null, accepts ? mine.acceptedAt : null));
    if (code === "relay_ignoring" && all !== undefined && left !== all)
      kept.usual = Math.max(kept.usual, all.count);
    const added = partSince(before.runs[code], own.runs[code], accepts ? theirs.acceptedAt : null);
    const run = joinRuns(added, left);
    if (run !== undefined) kept.runs[code] = run;
  }
  const refusedAt = latest(mine.refusedAt, theirs.refusedAt);
  const acceptedAt = latest(mine.acceptedAt, theirs.acceptedAt);
  return { relayId: theirs.relayId, kept, refusedAt, acceptedAt };
}

/** What this node added to a run since the row was read, unless another node ended it later. */
function partSince(
  before: KeptRun | undefined,
  own: KeptRun | undefined,
  endedAt: number | null,
): KeptRun | undefined {
  if (own === undefined || (endedAt !== null && own.at < endedAt)) return undefined;
  if (before === undefined || before.since !== own.since) return own;
  return own.count === before.count
    ? undefined
    : { ...own, since: before.at, count: own.count - before.count };
}

/** What is left of a run of all nodes where this one ended it then. */
function partAfter(run: KeptRun | undefined, endedAt: number | null): KeptRun | undefined {
  if (run === undefined || endedAt === null || run.since > endedAt) return run;
  return run.at <= endedAt ? undefined : { ...run, since: run.at, count: 1 };
}

function joinRuns(one: KeptRun | undefined, other: KeptRun | undefined): KeptRun | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const told = one.told === true || other.told === true ? { told: true } : {};
  const [since, at] = [Math.min(one.since, other.since), Math.max(one.at, other.at)];
  return { since, at, count: one.count + other.count, ...told };
}

/** Of two overlaps the later one counts; of one, its last calls, whichever node they came to. */
function joinUses(one: SecretUse | undefined, other: SecretUse | undefined): SecretUse | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.until !== other.until) return one.until > other.until ? one : other;
  const presentAt = latest(one.presentAt, other.presentAt);
  return { until: one.until, presentAt, previousAt: latest(one.previousAt, other.previousAt) };
}

function latest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/** When calls last verified by which secret: those that came here, and those of other nodes. */
export async function findSecretUse(tx: Reader, id: string, here: SecretUse): Promise<SecretUse> {
  const row = await HEALTH.pick("fruitless").get(tx, "WHERE id = $id", { id });
  const use = row?.fruitless?.use;
  return use?.until === here.until ? (joinUses(use, here) ?? here) : here;
}
