/**
 * Whether the database's disk has room, once a write found none: writes that need no new room go on beside it and tell nothing. It is asked by a
 * file that the server makes for a moment and that leaves nothing behind.
 */
import { systemClock } from "../../ground/clock.ts";
import type { Store } from "../port.ts";
import { causesOf } from "./error.ts";

const ASK_EVERY_MS = 5_000;
const TROUBLE = "The database's disk is full: make room there, and writes go on by themselves.";
/** As much memory as the server takes before it writes a file, which lies where the database does, and rows for about a megabyte. */
const LITTLE_MEMORY =
  "SELECT set_config('work_mem', '64kB', true) AS memory, set_config('temp_tablespaces', '', true) AS place";
const FILE = "SELECT count(*) AS rows FROM generate_series(1, ?1)";
const ROWS = 60_000;
/** By temp_file_limit. */
const FILE_REFUSED = "53400";

export class PostgresRoom {
  readonly #tell: (trouble: string | null) => void;
  #isWanting = false;
  #isAsking = false;
  #notedMs = 0;

  constructor(tell: (trouble: string | null) => void) {
    this.#tell = tell;
  }

  get trouble(): string | null {
    return this.#isWanting ? TROUBLE : null;
  }

  noteNone(): void {
    this.#notedMs = systemClock.monotonicMs();
    this.#isWanting = true;
    this.#tell(TROUBLE);
  }

  /** To be called every second. */
  look(read: Store["read"]): void {
    const nowMs = systemClock.monotonicMs();
    if (!this.#isWanting || this.#isAsking || nowMs - this.#notedMs < ASK_EVERY_MS) return;
    const notedMs = nowMs;
    this.#notedMs = notedMs;
    this.#isAsking = true;
    const asked = read(async (tx) => {
      await tx.get(LITTLE_MEMORY);
      await tx.get(FILE, ROWS);
    });
    void asked
      .then(
        () => true,
        // A server that lets it make no such file does not say.
        (error: unknown) => [...causesOf(error)].some(({ errno }) => errno === FILE_REFUSED),
      )
      .then((hasRoom) => {
        this.#isAsking = false;
        if (!hasRoom || this.#notedMs !== notedMs) return;
        this.#isWanting = false;
        this.#tell(null);
      });
  }
}
