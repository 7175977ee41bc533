/**
 * What an erasure leaves to do beyond the person's own rows: every stored text of the environment is read once, in small steps with pauses. An
 * event that is about the person is expunged; anywhere else the address is written over. It goes on after a restart from the beginning, and
 * forgets what it looked for when nothing is left; then the file's free pages and its log are given back, so that no copy stays in them.
 * Backups made before, and records that other people wrote, are not touched.
 */

import { type Clock, Loop } from "../../base/clock.ts";
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
import type { FencedStore, Writer } from "../../store/port.ts";
import {
  type Open,
  readEvents,
  readSweptEvent,
  STEP_ROWS,
  sweepEvent,
  sweepEvents,
} from "../event/expunge.ts";
import { readRows, redactRow, type SweptTable, TABLES } from "./erasure-table.ts";

/** Between two steps. */
const PAUSE_MS = 10;
const FIRST_LOOK_AFTER_MS = 1_000;
/** What an erasure by another process, or a failure of the store, left to do. */
const LOOK_EVERY_MS = 60_000;
/** Erasures that one walk serves. */
const MAX_AT_ONCE = 50;

interface SweepDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
  sealer: Sealer;
}

export class ErasureSweep {
  readonly #deps: SweepDeps;
  readonly #loop: Loop;
  #isFreed = false;

  constructor(deps: SweepDeps) {
    this.#deps = deps;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#work(),
      onError: (error) => deps.log.error("an erasure could not go on and is tried again", { error }),
    });
  }

  start(): void {
    void this.#loop.start(FIRST_LOOK_AFTER_MS);
  }

  /** Somebody was erased, or a payload was expunged: what that freed is given back too. */
  wake(): void {
    this.#isFreed = true;
    this.#loop.wake();
  }

  /** Ends after the step that is on its way; the next start goes on. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #work(): Promise<undefined> {
    const { store, sealer } = this.#deps;
    for (let more = true; more && this.#loop.running; ) {
      const open = await store.read((tx) => listOpenErasures(tx, sealer, MAX_AT_ONCE));
      more = open.length === MAX_AT_ONCE;
      if (open.length > 0) await this.#sweep(open);
      if (this.#isFreed || open.length > 0) await this.#giveBack();
    }
  }

  async #sweep(open: readonly OpenErasure[]): Promise<void> {
    for (const erasure of open) await this.#eraseRows(erasure);
    for (const [environmentId, erasures] of Map.groupBy(open, (one) => one.environmentId)) {
      const sought = erasures.map((one): Open => ({ ...one, text: new PiiMatcher(one.sought) }));
      await this.#dropChanges(sought);
      const running = await this.#sweepEvents(environmentId, sought);
      await this.#sweepRunning(running, sought);
      for (const table of TABLES) await this.#sweepTable(environmentId, table, sought);
    }
    for (const erasure of open) {
      await this.#deleteFiles(erasure);
      if (!this.#loop.running) return;
      await this.#write((tx) => this.#end(tx, erasure));
    }
    await this.#write(deleteSpentErasures);
  }

  async #giveBack(): Promise<void> {
    this.#isFreed = false;
    while (this.#loop.running && (await this.#deps.store.vacuumStep({ everything: true })))
      await this.#loop.pause(PAUSE_MS);
  }

  /** Those the request itself did not come to. */
  async #eraseRows({ environmentId, sought: { personId, by } }: OpenErasure): Promise<void> {
    const erasure = { environmentId, personId, by, nowMs: this.#deps.clock.now() };
    let cursor: EraseCursor | null = { recordSeq: 0 };
    while (cursor !== null && this.#loop.running) {
      const from: EraseCursor = cursor;
      cursor = (await this.#write((tx) => eraseRows(tx, erasure, from)))?.cursor ?? null;
    }
  }

  /** Changes of the person's records that became no event yet. */
  async #dropChanges(sought: readonly Open[]): Promise<void> {
    const ids = new Set<string | null>(sought.map(({ text }) => text.personId));
    let after: number | null = 0;
    while (after !== null && this.#loop.running) {
      const from: number = after;
      after = await this.#write(async (tx) => {
        const rows = await tx.all<{ seq: number; person: string | null }>(
          "SELECT seq, coalesce(owner_id, recipient_id) AS person FROM record_change WHERE seq > ?1 ORDER BY seq LIMIT ?2",
          from,
          STEP_ROWS,
        );
        const theirs = rows.filter(({ person }) => ids.has(person)).map(({ seq }) => ({ seq }));
        await tx.postEach("DELETE FROM record_change WHERE seq = $seq", theirs);
        return rows.length < STEP_ROWS ? null : (rows.at(-1)?.seq ?? null);
      });
    }
  }

  /** Answers the events that were running, whose attempt still has to write its end. */
  async #sweepEvents(environmentId: number, sought: readonly Open[]): Promise<number[]> {
    const running: number[] = [];
    let after: number | null = 0;
    while (after !== null && this.#loop.running) {
      const from: number = after;
      after = await this.#write(async (tx) => {
        const events = await readEvents(tx, environmentId, from);
        await sweepEvents(tx, events, sought);
        for (const event of events) if (event.state === "running") running.push(event.seq);
        return events.at(-1)?.seq ?? null;
      });
    }
    return running;
  }

  async #sweepRunning(running: readonly number[], sought: readonly Open[]): Promise<void> {
    for (const seq of running) {
      let isRunning = true;
      while (isRunning && this.#loop.running) {
        isRunning = await this.#write(async (tx) => {
          const event = await readSweptEvent(tx, seq);
          if (event?.state === "running") return true;
          if (event !== null) await sweepEvent(tx, event, sought);
          return false;
        });
      }
    }
  }

  /** Every row of the table in steps of bounded rows and bytes. */
  async #sweepTable(environmentId: number, table: SweptTable, sought: readonly Open[]): Promise<void> {
    let after: string | number | null = table.key === "id" ? "" : -1;
    while (after !== null && this.#loop.running) {
      const from: string | number = after;
      after = await this.#write(async (tx) => {
        const rows = await readRows(tx, environmentId, table, from);
        await Promise.all(rows.map((row) => redactRow(tx, environmentId, table, row, sought)));
        return rows.at(-1)?.key ?? null;
      });
    }
  }

  /** Files that no other record names; one file a step, because it may be megabytes. */
  async #deleteFiles({ seq, environmentId }: OpenErasure): Promise<void> {
    let isMore = true;
    while (isMore && this.#loop.running) {
      isMore = await this.#write(async (tx) => {
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
      });
    }
  }

  async #end(tx: Writer, { seq, environmentId, sought }: OpenErasure): Promise<void> {
    await endErasure(tx, seq);
    await writeAudit(tx, {
      environmentId,
      nowMs: this.#deps.clock.now(),
      by: sought.by,
      action: "person.expunged",
      target: `person:${sought.personId}`,
      after: { status: "erased", expunged: true },
    });
  }

  /** One step in a transaction that no relay hears of, and a pause. */
  async #write<Result>(work: (tx: Writer) => Promise<Result>): Promise<Result> {
    const result = await this.#deps.store.write("erasure", work);
    await this.#loop.pause(PAUSE_MS);
    return result;
  }
}
