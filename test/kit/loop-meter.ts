/**
 * Counts the work between two turns of the event loop: statements of SQLite, the rows that they returned or changed, their bytes, and values
 * that were read from JSON or written as JSON. Unlike milliseconds, counts are the same on every machine.
 */
import { SqliteConnection } from "../../src/store/sqlite/connection.ts";

/** The largest count of one turn since the meter was reset, for each kind of work. */
export interface TurnWork {
  statements: number;
  rows: number;
  bytes: number;
  values: number;
}

/** Number of turns without work after which the loop counts as idle. Some work continues a few turns later, such as a group that waits for others. */
const IDLE_TURNS = 20;
const NONE: TurnWork = { statements: 0, rows: 0, bytes: 0, values: 0 };

/** Wraps the connection's methods and JSON until disposal. Use only one meter at a time. */
export class LoopMeter implements Disposable {
  #turn: TurnWork = { ...NONE };
  #most: TurnWork = { ...NONE };
  #isWatching = true;
  #idleTurns = 0;
  readonly #restore: (() => void)[] = [];

  constructor() {
    const { prototype } = SqliteConnection;
    this.#wrap(prototype, "all", (rows: object[]) => this.#countRows(rows));
    this.#wrap(prototype, "get", (row: object | null) => this.#countRows(row === null ? [] : [row]));
    for (const name of ["run", "runEach"] as const)
      this.#wrap(prototype, name, (changes: number) => this.#add({ ...NONE, statements: 1, rows: changes }));
    this.#wrap(prototype, "post", () => this.#add({ ...NONE, statements: 1 }));
    this.#wrapJson();
    setImmediate(this.#look);
  }

  reset(): void {
    this.#turn = { ...NONE };
    this.#most = { ...NONE };
    this.#idleTurns = 0;
  }

  /** Waits until the loop has turned several times without work, then returns the largest count of one turn since the reset. */
  async rest(): Promise<TurnWork> {
    while (this.#idleTurns < IDLE_TURNS) await new Promise((resolve) => setImmediate(resolve));
    return this.#most;
  }

  [Symbol.dispose](): void {
    this.#isWatching = false;
    for (const restore of this.#restore) restore();
  }

  /** Ends a turn. */
  readonly #look = (): void => {
    const [most, turn] = [this.#most, this.#turn];
    this.#idleTurns = turn.statements + turn.values === 0 ? this.#idleTurns + 1 : 0;
    this.#most = {
      statements: Math.max(most.statements, turn.statements),
      rows: Math.max(most.rows, turn.rows),
      bytes: Math.max(most.bytes, turn.bytes),
      values: Math.max(most.values, turn.values),
    };
    this.#turn = { ...NONE };
    if (this.#isWatching) setImmediate(this.#look);
  };

  #add({ statements, rows, bytes, values }: TurnWork): void {
    this.#turn.statements += statements;
    this.#turn.rows += rows;
    this.#turn.bytes += bytes;
    this.#turn.values += values;
  }

  #countRows(rows: readonly object[]): void {
    let bytes = 0;
    for (const row of rows)
      for (const value of Object.values(row)) bytes += typeof value === "string" || value instanceof Uint8Array ? value.length : 8;
    this.#add({ statements: 1, rows: rows.length, bytes, values: 0 });
  }

  /** Counts what a method's promise resolves with, in the turn that called it. */
  #wrap<Name extends "all" | "get" | "run" | "runEach" | "post">(of: SqliteConnection, name: Name, count: (result: never) => void): void {
    const before = Object.getOwnPropertyDescriptor(of, name);
    const method = before?.value as (...args: unknown[]) => Promise<never>;
    Object.defineProperty(of, name, {
      ...before,
      value(this: SqliteConnection, ...args: unknown[]) {
        return method.apply(this, args).then((result) => {
          count(result);
          return result;
        });
      },
    });
    this.#restore.push(() => void Object.defineProperty(of, name, before ?? {}));
  }

  #wrapJson(): void {
    const { parse, stringify } = JSON;
    const countValues = (value: unknown): unknown => {
      this.#add({ ...NONE, values: countIn(value) });
      return value;
    };
    JSON.parse = (...args: Parameters<typeof parse>) => countValues(parse(...args));
    JSON.stringify = ((...args: Parameters<typeof stringify>) => {
      countValues(args[0]);
      return stringify(...args);
    }) as typeof stringify;
    this.#restore.push(() => {
      JSON.parse = parse;
      JSON.stringify = stringify;
    });
  }
}

function countIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, one) => sum + countIn(one), 1);
}
