/**
 * The health of relays that several nodes serve. Each node sees only its own requests and runs, and the row holds what all nodes saw. A node merges
 * its changes into the row in the transaction that writes it, and evaluates the streaks afterwards.
 */
import { MINUTE_MS } from "../../base/limit.ts";
import type { SecretUse } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  emptyHealth,
  HEALTH,
  type HealthCode,
  type HealthRow,
  type RelayHealth,
  readHealth,
  rowOf,
  type StoredHealth,
  type Streak,
  type StreakCode,
} from "./condition.ts";
import { Health, type PendingRows } from "./health.ts";
import { STREAK_CODES } from "./problem.ts";

/** A row that differs only in the time of the last accepted request is written once in this time. */
const ACCEPTED_EVERY_MS = MINUTE_MS;

type Ends = Partial<Record<StreakCode, number>>;

/** The state that this node has of one relay, in addition to its health. */
interface NodeState {
  /** The row as this node read or wrote it last. */
  base: HealthRow;
  /** The wall times when this node ended streaks since then. Such an end can also end another node's streak. */
  ends: Ends;
  /** Streaks that grew here, to be evaluated after the merge. */
  grown: Map<StreakCode, LiveRelay>;
  /** The last rejected request while this node knows no verified one. Another node may know one, so the merge decides. */
  unverified: { relay: LiveRelay; cause: string } | null;
  use: SecretUse | null;
}

/** The changes that this node is about to merge into the row. */
interface NodeChanges {
  base: HealthRow;
  local: HealthRow;
  ends: Ends;
}

export class SharedHealth extends Health {
  readonly #states = new WeakMap<RelayHealth, NodeState>();
  #unlisten: () => void = () => undefined;

  override async start(isOver: Parameters<Health["start"]>[0]): Promise<void> {
    // Another node may raise or clear a problem. Changes on this node must be able to clear it too.
    const adopt = (): void => void this.problems.load({ adopts: true }).catch(() => undefined);
    this.#unlisten = this.deps.store.listen(adopt, ["problem"]);
    await super.start(isOver);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#unlisten();
  }

  override recordVerified(relay: LiveRelay, nowMs: number): number | null {
    const known = this.healthOf(relay.id);
    this.#stateOf(known).use = relay.receiver?.overlap ?? null;
    this.markChanged(known);
    return super.recordVerified(relay, nowMs);
  }

  override async refresh(snapshot: Snapshot): Promise<{ relay: LiveRelay; code: HealthCode }[]> {
    for (const { id } of snapshot.relays) this.markChanged(this.healthOf(id));
    return await super.refresh(snapshot);
  }

  protected override track(relayId: string, row: RowOf<typeof HEALTH> | null): RelayHealth {
    const known = super.track(relayId, row);
    this.#states.set(known, {
      base: copyHealth(known),
      ends: {},
      grown: new Map(),
      unverified: null,
      use: null,
    });
    return known;
  }

  protected override handleGrowth(known: RelayHealth, relay: LiveRelay, code: StreakCode): void {
    this.#stateOf(known).grown.set(code, relay);
  }

  protected override recordNeverVerified(relay: LiveRelay, cause: string): void {
    const known = this.healthOf(relay.id);
    this.#stateOf(known).unverified = { relay, cause };
    this.markChanged(known);
  }

  protected override endStreak(relay: LiveRelay, code: StreakCode): void {
    const known = this.healthOf(relay.id);
    // Another node may have such a streak.
    this.removeStreak(known, code, this.deps.clock.now());
    this.markChanged(known);
    super.endStreak(relay, code);
  }

  protected override removeStreak(known: RelayHealth, code: StreakCode, endedAt: number): void {
    super.removeStreak(known, code, endedAt);
    this.#stateOf(known).ends[code] = endedAt;
  }

  protected override markChanged(known: RelayHealth): void {
    super.markChanged(known, true);
  }

  protected override prepareRows(unsaved: readonly RelayHealth[]): PendingRows {
    const shares = unsaved.map((known) => ({ known, share: this.#takeChanges(known) }));
    let rows = new Map<string, HealthRow>();
    return {
      write: async (tx) => {
        rows = await mergeRows(tx, shares);
      },
      confirm: () => {
        for (const { known, share } of shares) {
          const row = rows.get(known.relayId);
          if (row !== undefined) this.#rebase(known, row, share);
        }
      },
      cancel: () => {
        // These ends must still be merged.
        for (const { known, share } of shares) {
          const part = this.#stateOf(known);
          part.ends = { ...share.ends, ...part.ends };
        }
      },
    };
  }

  /** Takes what happened here since the last write. */
  #takeChanges(known: RelayHealth): NodeChanges {
    const part = this.#stateOf(known);
    const { base, ends, use } = part;
    const local = copyHealth(known);
    if (use !== null) local.stored.use = { ...use };
    part.ends = {};
    return { base, local, ends };
  }

  /** Continues from the merged row, and keeps what happened here during the write. */
  #rebase(known: RelayHealth, row: HealthRow, { local }: NodeChanges): void {
    const part = this.#stateOf(known);
    const joined = mergeHealth({ base: local, local: known, ends: part.ends }, row);
    for (const code of STREAK_CODES) {
      const [was, run, seen] = [known.stored.runs[code], joined.stored.runs[code], known.seen[code]];
      if (run === undefined) delete known.seen[code];
      else
        known.seen[code] = {
          sinceMs:
            seen !== undefined && was?.since === run.since ? seen.sinceMs : this.#toMonotonic(run.since),
          atMs: seen !== undefined && was?.at === run.at ? seen.atMs : this.#toMonotonic(run.at),
          why: seen?.why ?? null,
        };
    }
    if (joined.stored.runs.relay_refusing === undefined) known.found = null;
    Object.assign(known, joined, { storedAcceptedAt: row.acceptedAt });
    part.base = copyHealth(row);
    const { unverified } = part;
    part.unverified = null;
    if (unverified !== null && row.acceptedAt === null) {
      const wasAlerted = known.stored.neverVerifiedAlerted;
      super.recordNeverVerified(unverified.relay, unverified.cause);
      if (known.stored.neverVerifiedAlerted !== wasAlerted) this.markChanged(known);
    }
    const grown = [...part.grown];
    part.grown.clear();
    for (const [code, relay] of grown) this.evaluate(relay, code);
  }

  /** Converts a wall time to monotonic time. */
  #toMonotonic(wallMs: number): number {
    const { clock } = this.deps;
    return clock.monotonicMs() - Math.max(0, clock.now() - wallMs);
  }

  #stateOf(known: RelayHealth): NodeState {
    const part = this.#states.get(known);
    if (part === undefined) throw new Error("A relay is known without the part that nodes share.");
    return part;
  }
}

/** Merges the changes into the current rows, and returns these. */
async function mergeRows(
  tx: Writer,
  shares: readonly { known: RelayHealth; share: NodeChanges }[],
): Promise<Map<string, HealthRow>> {
  const ids = JSON.stringify(shares.map(({ known }) => known.relayId));
  const stored = await HEALTH.all(tx, "WHERE id IN (SELECT value FROM json_each($ids))", { ids });
  const rows = new Map<string, HealthRow>(stored.map((row) => [row.id, readHealth(row.id, row)]));
  for (const { known, share } of shares) {
    const before = rows.get(known.relayId);
    const after = before === undefined ? undefined : mergeHealth(share, before);
    if (before === undefined || after === undefined || !needsWrite(before, after)) continue;
    await HEALTH.update(tx, rowOf(after));
    rows.set(known.relayId, after);
  }
  return rows;
}

function copyHealth({ relayId, stored, refusedAt, acceptedAt }: HealthRow): HealthRow {
  return { relayId, stored: { ...stored, runs: { ...stored.runs } }, refusedAt, acceptedAt };
}

/** Reports whether the difference is worth a write. */
function needsWrite(before: HealthRow, after: HealthRow): boolean {
  const isSame = Bun.deepEquals(before.stored, after.stored) && before.refusedAt === after.refusedAt;
  if (!isSame || after.acceptedAt === null || before.acceptedAt === null)
    return !isSame || before.acceptedAt !== after.acceptedAt;
  return after.acceptedAt - before.acceptedAt >= ACCEPTED_EVERY_MS;
}

/** Merges this node's changes into the row. The newer version of the definition starts again, whichever node saw it first. */
function mergeHealth({ base, local, ends }: NodeChanges, shared: HealthRow): HealthRow {
  const version = Math.max(local.stored.version, shared.stored.version);
  const ofVersion = ({ stored }: HealthRow): StoredHealth =>
    stored.version === version ? stored : emptyHealth(version, stored);
  const [before, own, common] = [ofVersion(base), ofVersion(local), ofVersion(shared)];
  const use = mergeUses(own.use, common.use);
  const stored: StoredHealth = {
    version,
    matched: own.matched || common.matched,
    found: own.found || common.found,
    usual: Math.max(own.usual, common.usual),
    uncalledTold: own.uncalledTold || common.uncalledTold,
    neverVerifiedAlerted: own.neverVerifiedAlerted === true || common.neverVerifiedAlerted === true,
    runs: {},
    ...(use === undefined ? {} : { use }),
  };
  for (const code of STREAK_CODES) {
    const isRefusing = code === "relay_refusing";
    const all = common.runs[code];
    const left = streakAfter(all, latest(ends[code] ?? null, isRefusing ? local.acceptedAt : null));
    if (code === "relay_ignoring" && all !== undefined && left !== all)
      stored.usual = Math.max(stored.usual, all.count);
    const added = streakSince(before.runs[code], own.runs[code], isRefusing ? shared.acceptedAt : null);
    const run = mergeStreaks(added, left);
    if (run !== undefined) stored.runs[code] = run;
  }
  const refusedAt = latest(local.refusedAt, shared.refusedAt);
  const acceptedAt = latest(local.acceptedAt, shared.acceptedAt);
  return { relayId: shared.relayId, stored, refusedAt, acceptedAt };
}

/** Returns what this node added to a streak since it read the row, unless another node ended the streak later. */
function streakSince(
  before: Streak | undefined,
  own: Streak | undefined,
  endedAt: number | null,
): Streak | undefined {
  if (own === undefined || (endedAt !== null && own.at < endedAt)) return undefined;
  if (before === undefined || before.since !== own.since) return own;
  return own.count === before.count
    ? undefined
    : { ...own, since: before.at, count: own.count - before.count };
}

/** Returns what is left of a streak of all nodes after this node ended it at `endedAt`. */
function streakAfter(run: Streak | undefined, endedAt: number | null): Streak | undefined {
  if (run === undefined || endedAt === null || run.since > endedAt) return run;
  return run.at <= endedAt ? undefined : { ...run, since: run.at, count: 1 };
}

function mergeStreaks(one: Streak | undefined, other: Streak | undefined): Streak | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const alerted = one.told === true || other.told === true ? { told: true } : {};
  const [since, at] = [Math.min(one.since, other.since), Math.max(one.at, other.at)];
  return { since, at, count: one.count + other.count, ...alerted };
}

/** Merges two uses of a secret: of two overlap periods the later one, of one period the last requests. */
function mergeUses(one: SecretUse | undefined, other: SecretUse | undefined): SecretUse | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.until !== other.until) return one.until > other.until ? one : other;
  const presentAt = latest(one.presentAt, other.presentAt);
  return { until: one.until, presentAt, previousAt: latest(one.previousAt, other.previousAt) };
}

function latest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/** Finds when requests last verified with each secret, on this node and on the others. */
export async function findSecretUse(tx: Reader, id: string, local: SecretUse): Promise<SecretUse> {
  const row = await HEALTH.pick("streaks").get(tx, "WHERE id = $id", { id });
  const use = row?.streaks?.use;
  return use?.until === local.until ? (mergeUses(use, local) ?? local) : local;
}
