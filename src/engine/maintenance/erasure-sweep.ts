/**
 * Completes the erasure of a person beyond their own rows: reads every stored text of the environment once, in small steps with pauses. Expunges
 * events about the person, and overwrites the address elsewhere. Starts again after a restart, and forgets the address when nothing is left. Then
 * it returns the file's free pages, so that no copy stays in them. Earlier backups, and records that other people wrote, are not touched.
 */

import { BackgroundJob, type Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import {
  deleteSpentErasures,
  type EraseCursor,
  endErasure,
  eraseRows,
  listOpenErasures,
  type OpenErasure,
} from "../../shop/people/person-erase.ts";
import { PiiMatcher } from "../../shop/people/pii-match.ts";
import { EVERYTHING, type FencedStore, type Writer, type WriteScope } from "../../store/port.ts";
import { type Open, readEvents, readSweptEvent, STEP_ROWS, sweepEvents } from "../event/expunge.ts";
import { readRows, redactRow, type SweptTable, TABLES } from "./erasure-table.ts";

/** The pause between two steps. */
const PAUSE_MS = 10;
const FIRST_LOOK_AFTER_MS = 1_000;
/** Finds what an erasure by another process, or a failure of the store, left. */
const LOOK_EVERY_MS = 60_000;
/** The most erasures of one walk. */
const MAX_AT_ONCE = 50;

interface SweepDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
  sealer: Sealer;
}

export class ErasureSweep extends BackgroundJob {
  readonly #deps: SweepDeps;
  #isFreed = false;

  constructor(deps: SweepDeps) {
    super({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: FIRST_LOOK_AFTER_MS,
      onError: (error) => deps.log.error("an erasure could not continue and will be retried", { error }),
    });
    this.#deps = deps;
  }

  /** Sweeps now, and returns the pages that an erasure or an expunged payload freed. */
  override wake(): void {
    this.#isFreed = true;
    super.wake();
  }

  protected override async turn(): Promise<undefined> {
    const { store, sealer } = this.#deps;
    await this.loop.repeat(async () => {
      const open = await store.read((tx) => listOpenErasures(tx, sealer, MAX_AT_ONCE));
      if (open.length > 0) await this.#sweep(open);
      if (this.#isFreed || open.length > 0) await this.#vacuum();
      return open.length === MAX_AT_ONCE;
    });
  }

  async #sweep(open: readonly OpenErasure[]): Promise<void> {
    for (const erasure of open) await this.#eraseRows(erasure);
    for (const [environmentId, erasures] of Map.groupBy(open, (one) => one.environmentId)) {
      const targets = erasures.map((one): Open => ({ ...one, text: new PiiMatcher(one.target) }));
      await this.#dropChanges(environmentId, targets);
      const running = await this.#sweepEvents(environmentId, targets);
      await this.#sweepRunning(environmentId, running, targets);
      for (const table of TABLES) await this.#sweepTable(environmentId, table, targets);
    }
    for (const erasure of open) {
      await this.#deleteFiles(erasure);
      if (!this.loop.running) return;
      await this.#write((tx) => this.#end(tx, erasure), erasure.environmentId);
    }
    await this.#write(deleteSpentErasures, EVERYTHING);
  }

  async #vacuum(): Promise<void> {
    this.#isFreed = false;
    await this.loop.repeat(() => this.#deps.store.vacuumStep({ everything: true }), PAUSE_MS);
  }

  /** Erases the person's rows that the request did not reach. */
  async #eraseRows({ environmentId, target: { personId, by } }: OpenErasure): Promise<void> {
    const erasure = { environmentId, personId, by, nowMs: this.#deps.clock.now() };
    const first: EraseCursor = { recordSeq: 0 };
    await this.loop.walk(first, async (from) => {
      const step = await this.#write((tx) => eraseRows(tx, erasure, from), environmentId);
      return step?.cursor ?? null;
    });
  }

  /** Deletes changes of the person's records that are no event yet. */
  async #dropChanges(environmentId: number, targets: readonly Open[]): Promise<void> {
    const ids = new Set<string | null>(targets.map(({ text }) => text.personId));
    await this.loop.walk(0, (from: number) =>
      this.#write(async (tx) => {
        const rows = await tx.all<{ seq: number; person: string | null }>(
          "SELECT seq, coalesce(owner_id, recipient_id) AS person FROM record_change WHERE seq > ?1 ORDER BY seq LIMIT ?2",
          from,
          STEP_ROWS,
        );
        const theirs = rows.filter(({ person }) => ids.has(person)).map(({ seq }) => ({ seq }));
        await tx.postEach("DELETE FROM record_change WHERE seq = $seq", theirs);
        return rows.length < STEP_ROWS ? null : (rows.at(-1)?.seq ?? null);
      }, environmentId),
    );
  }

  /** Sweeps the events. Returns the running ones, whose attempt still writes its result. */
  async #sweepEvents(environmentId: number, targets: readonly Open[]): Promise<number[]> {
    const running: number[] = [];
    await this.loop.walk(0, (from: number) =>
      this.#write(async (tx) => {
        const events = await readEvents(tx, environmentId, from);
        await sweepEvents(tx, events, targets);
        for (const event of events) if (event.state === "running") running.push(event.seq);
        return events.at(-1)?.seq ?? null;
      }, environmentId),
    );
    return running;
  }

  async #sweepRunning(
    environmentId: number,
    running: readonly number[],
    targets: readonly Open[],
  ): Promise<void> {
    for (const seq of running) {
      await this.loop.repeat(() =>
        this.#write(async (tx) => {
          const event = await readSweptEvent(tx, seq);
          if (event?.state === "running") return true;
          if (event !== null) await sweepEvents(tx, [event], targets);
          return false;
        }, environmentId),
      );
    }
  }

  /** Sweeps the table in steps of bounded rows and bytes. */
  async #sweepTable(environmentId: number, table: SweptTable, targets: readonly Open[]): Promise<void> {
    const first: string | number = table.key === "id" ? "" : -1;
    await this.loop.walk<string | number>(first, (from) =>
      this.#write(async (tx) => {
        const rows = await readRows(tx, environmentId, table, from);
        await Promise.all(rows.map((row) => redactRow(tx, environmentId, table, row, targets)));
        return rows.at(-1)?.key ?? null;
      }, environmentId),
    );
  }

  /** Deletes the files that no other record names, one in a step, because a file can have megabytes. */
  async #deleteFiles({ seq, environmentId }: OpenErasure): Promise<void> {
    await this.loop.repeat(() =>
      this.#write(async (tx) => {
        const file = await tx.get<{ id: string }>(
          "SELECT file_id AS id FROM erasure_file WHERE erasure_seq = ?1 LIMIT 1",
          seq,
        );
        if (file === null) return false;
        await tx.run(
          `DELETE FROM file WHERE id = ?1 AND environment_id = ?2
           AND NOT EXISTS (SELECT 1 FROM record_file WHERE file_id = ?1)`,
          file.id,
          environmentId,
        );
        await tx.run("DELETE FROM erasure_file WHERE erasure_seq = ?1 AND file_id = ?2", seq, file.id);
        return true;
      }, environmentId),
    );
  }

  async #end(tx: Writer, { seq, environmentId, target }: OpenErasure): Promise<void> {
    await endErasure(tx, seq);
    await writeAudit(tx, {
      environmentId,
      nowMs: this.#deps.clock.now(),
      by: target.by,
      action: "person.expunged",
      target: `person:${target.personId}`,
      after: { status: "erased", expunged: true },
    });
  }

  /** Runs one step in a transaction that notifies no relay, and pauses. */
  async #write<Result>(work: (tx: Writer) => Promise<Result>, scope: WriteScope): Promise<Result> {
    const result = await this.#deps.store.write("erasure", work, scope);
    await this.loop.pause(PAUSE_MS);
    return result;
  }
}
