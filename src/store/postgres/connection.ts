/**
 * Implements one PostgreSQL connection with pipelining: statements are sent in order, and none waits for the answer of the one before. A connection
 * that was lost or does not answer is never used again.
 */
import { SQL } from "bun";
import { systemClock, waitAtMost } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import type { GroupConnection } from "../group-commit/transaction.ts";
import { type Reader, type SqlArguments, type SqlNames, WorkUndone } from "../port.ts";
import { COLUMN_TYPES } from "./bulk-insert.ts";
import { sayWhere } from "./connection-advice.ts";
import {
  BEGINS,
  CONNECT_WITHIN_S,
  READ_LIMITS,
  requireLimits,
  SET_LIMITS,
  soleOptions,
} from "./connection-option.ts";
import { toPostgres } from "./dialect.ts";
import {
  ConnectionLost,
  classifyError,
  LimitsNotKept,
  type NoRoom,
  NotReached,
  ReadOnly,
  refusalOf,
} from "./error.ts";
import { DrawnNumbers } from "./event-number.ts";
import { Posted } from "./pending-insert.ts";
import { PrefetchedReads } from "./prefetch.ts";
import { arrange, asSqliteGives } from "./value.ts";

/** Identifies a server process by its number and its start, because numbers are reused, also by another server. */
export const OTHER_END = "pid || ' ' || extract(epoch FROM backend_start)";
const OWN_END = `SELECT ${OTHER_END} AS name FROM pg_stat_activity WHERE pid = pg_backend_pid()`;
const STANDBY = "SELECT pg_is_in_recovery() AS standby";

/** The first error of statements that no caller awaits. */
interface Part {
  failed: unknown;
}

type OnRefused = (error: NoRoom | ReadOnly) => void;

export interface OpenOptions {
  planned?: "once" | "by values";
  writes?: "rows" | "yes" | "no";
  onRefused?: OnRefused;
}

type SqlRows = Record<string, unknown>[] & { count: number | null; command: string | null };

export class PostgresConnection implements GroupConnection {
  readonly #pool: SQL;
  readonly #connection: Awaited<ReturnType<SQL["reserve"]>>;
  #lost: ConnectionLost | null = null;
  #part: Part = { failed: null };
  #posted: Promise<void> = Promise.resolve();
  #toPost = new Posted();
  readonly #prefetched = new PrefetchedReads<SqlRows>();
  #numbers = new DrawnNumbers(this);
  /** The number of statements without an answer, and when the last answer came or the first of them was sent. */
  #unanswered = 0;
  #sinceMs = 0;
  #answers = 0;
  readonly #waiting = new Set<(error: unknown) => void>();
  #onIdle: (() => void)[] = [];
  readonly #onRefused: OnRefused;
  /** Identifies the server process of this connection. Null if the server has no list of its processes. */
  #otherEnd: string | null = null;
  #onStandby = false;

  private constructor(pool: SQL, connection: Awaited<ReturnType<SQL["reserve"]>>, onRefused: OnRefused) {
    this.#pool = pool;
    this.#connection = connection;
    this.#onRefused = onRefused;
  }

  /**
   * Opens a connection. Throws NotReached if the server does not answer or refuses, and LimitsNotKept if the session does not have its limits. `name`
   * appears in the server's list of sessions. `planned` chooses how statements are planned (see BEGINS). With `writes`, a standby is refused, and
   * `rows` also joins the rows of an INSERT into one statement. `onRefused` receives the error of a full disk or of a server that takes no writes.
   */
  static async open(
    place: DatabaseUrl,
    name: string,
    { planned = "once", writes = "no", onRefused = () => undefined }: OpenOptions = {},
  ): Promise<PostgresConnection> {
    let pool: SQL | null = null;
    try {
      pool = new SQL(soleOptions(place, name));
      const connection = new PostgresConnection(pool, await pool.reserve(), onRefused);
      // Sets these by statements, because a pooler may drop options of a new connection that it does not know.
      const columns = writes === "rows" ? COLUMN_TYPES : "SELECT";
      const settings = connection.script(
        `${SET_LIMITS}; ${BEGINS[planned]}; ${columns}; ${STANDBY}; ${OWN_END}`,
      );
      // Reads the limits in a separate message. A pooler in transaction mode then answers from another session, which does not have them.
      const read = connection.all<{ name: string; value: string }>(READ_LIMITS);
      const all = Promise.all([settings, read]);
      await waitAtMost(systemClock, CONNECT_WITHIN_S * 1_000, all);
      if (connection.silentMs > 0) connection.giveUp();
      const [answers, limits] = await all;
      const [types = [], [recovering] = [], [end] = []] = answers.slice(-3);
      requireLimits(limits);
      connection.#onStandby = recovering?.standby === true;
      if (writes !== "no" && connection.#onStandby)
        throw new ReadOnly("a standby answers, which takes no writes.");
      connection.#toPost = new Posted(types);
      connection.#otherEnd = (end?.name as string | undefined) ?? null;
      return connection;
    } catch (error) {
      void pool?.close({ timeout: 0 }).catch(() => undefined);
      if (error instanceof LimitsNotKept) throw error;
      const message = await sayWhere(place, classifyError(error) as Error);
      throw new NotReached(`The database cannot be reached: ${message}`, { cause: error });
    }
  }

  async get<Row>(sql: string, ...values: SqlArguments): Promise<Row | null> {
    const rows = await this.#ask(sql, values);
    return (rows[0] as Row | undefined) ?? null;
  }

  async all<Row>(sql: string, ...values: SqlArguments): Promise<Row[]> {
    return [...(await this.#ask(sql, values))] as Row[];
  }

  async run(sql: string, ...values: SqlArguments): Promise<number> {
    this.#prefetched.written(sql);
    return (await this.#ask(sql, values)).count ?? 0;
  }

  /** Sends reads ahead. A later `get` or `all` of the same statement uses the answer. */
  readonly prefetch: Reader = {
    get: async <Row>(sql: string, ...values: SqlArguments) =>
      ((await this.#askAhead(sql, values))[0] as Row | undefined) ?? null,
    all: async <Row>(sql: string, ...values: SqlArguments) => (await this.#askAhead(sql, values)) as Row[],
  };

  get numbers(): DrawnNumbers {
    return this.#numbers;
  }

  /** Queues the statement. It is sent with others of its kind, before the next statement that is not queued. */
  async post(sql: string, ...values: SqlArguments): Promise<void> {
    this.#post(sql, [values]);
  }

  async postEach(sql: string, rows: readonly SqlNames[]): Promise<void> {
    this.#post(sql, eachAlone(rows));
  }

  #post(sql: string, more: readonly SqlArguments[]): void {
    if (more.length === 0) return;
    this.#prefetched.written(sql);
    this.#toPost.add(sql, more);
  }

  #flush(): void {
    for (const { text, values } of this.#toPost.take())
      this.#posted = this.#send(text, values).then(() => undefined, this.#failureRecorder());
  }

  async settle(): Promise<void> {
    this.#flush();
    // Answers come in the order of their statements.
    await this.#posted;
    const failed = this.takeFailure();
    if (failed !== null) throw failed;
  }

  firstOf(error: unknown): unknown {
    const first = this.takeFailure() ?? error;
    this.discard();
    return first;
  }

  /** Drops the queued statements and the errors of those already sent, before a rollback. */
  discard(): void {
    this.#toPost.clear();
    this.#forget();
    this.endPart();
  }

  /** Drops what the transaction read in advance. */
  #forget(): void {
    this.#prefetched.clear();
    this.#numbers = new DrawnNumbers(this);
  }

  /** Starts a new part, so that later errors do not mix with earlier ones. Returns the part that ends. */
  endPart(): Readonly<Part> {
    const ended = this.#part;
    this.#part = { failed: null };
    return ended;
  }

  #failureRecorder(): (error: unknown) => void {
    const part = this.#part;
    return (error) => {
      // The driver may report a statement that follows a failed one before that one.
      if (part.failed === null || part.failed instanceof WorkUndone) part.failed = error;
    };
  }

  async runEach(sql: string, rows: readonly SqlNames[]): Promise<number> {
    if (rows.length === 0) return 0;
    this.#prefetched.written(sql);
    this.#flush();
    const answers = await Promise.all(
      this.#toPost.write(sql, eachAlone(rows)).map(({ text, values }) => this.#send(text, values)),
    );
    return answers.reduce((sum, { count }) => sum + (count ?? 0), 0);
  }

  /** Resolves when the answer came, also if it is an error, which the transaction keeps. */
  async exec(sql: string, ...values: SqlArguments): Promise<void> {
    await this.execRow(sql, ...values);
  }

  /** Does the same, and resolves with the first row. Resolves with null if there is none, or after an error. */
  execRow<Row>(sql: string, ...values: SqlArguments): Promise<Row | null> {
    if (!/^\s*(?:SELECT|SAVEPOINT|RELEASE)\b/.test(sql)) this.#forget();
    this.#flush();
    const { text, places } = toPostgres(sql);
    const sent = this.#send(text, places.length === 0 ? [] : arrange(sql, places, values));
    const record = this.#failureRecorder();
    return sent.then(
      ([row]) => {
        if (row === undefined) return null;
        asSqliteGives(row);
        return row as Row;
      },
      (error: unknown) => {
        record(error);
        return null;
      },
    );
  }

  /** Runs several statements without values in one message. Returns the rows of each. */
  async script(sql: string): Promise<SqlRows[]> {
    this.#forget();
    this.#flush();
    return await this.#send<SqlRows[]>(sql, null);
  }

  /**
   * Commits the transaction. Returns whether the server committed it or rolled it back. Does not wait for earlier statements, and later ones do not
   * wait for it.
   */
  async commit(): Promise<"COMMIT" | "ROLLBACK"> {
    this.#forget();
    this.#flush();
    return (await this.#send("COMMIT", [])).command as "COMMIT" | "ROLLBACK";
  }

  /** Returns and clears the first error of statements that no caller awaited. */
  takeFailure(): unknown {
    const { failed } = this.#part;
    this.#part.failed = null;
    return failed;
  }

  get inTransaction(): boolean {
    return this.#lost === null;
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** The number of statements that wait for an answer. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /** The number of answers received. */
  get answers(): number {
    return this.#answers;
  }

  /** Milliseconds of waiting since the last answer. 0 if no answer is awaited. */
  get silentMs(): number {
    return this.#unanswered === 0 ? 0 : systemClock.monotonicMs() - this.#sinceMs;
  }

  get otherEnd(): string | null {
    return this.#otherEnd;
  }

  /** True if the server was a standby when the connection was opened. The connection stays there, even if the name now leads to another server. */
  get onStandby(): boolean {
    return this.#onStandby;
  }

  /** Marks the connection as lost, and rejects all statements that wait. */
  giveUp(why = `The database gave no answer for ${Math.round(this.silentMs / 1_000)} s.`): void {
    this.#recordLoss(new ConnectionLost(why));
  }

  /** Resolves when every statement has its answer. */
  async idle(): Promise<void> {
    if (this.#unanswered > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async close(): Promise<void> {
    this.#lost ??= new ConnectionLost("The connection is closed.");
    await this.#pool.close({ timeout: 0 }).catch(() => undefined);
  }

  async #ask(sql: string, values: SqlArguments): Promise<SqlRows> {
    const { text, places } = toPostgres(sql);
    const arranged = places.length === 0 ? [] : arrange(sql, places, values);
    const asked = this.#prefetched.find(text, arranged);
    if (asked !== undefined) return (await asked).map((row) => ({ ...row })) as SqlRows;
    if (!/^\s*SELECT\b/i.test(text)) this.#prefetched.written(text);
    this.#flush();
    const rows = await this.#send(text, arranged);
    for (const row of rows) asSqliteGives(row);
    return rows;
  }

  /** Sends a read ahead of the queued statements, unless it reads what they write. */
  async #askAhead(sql: string, values: SqlArguments): Promise<SqlRows> {
    const { text, places } = toPostgres(sql);
    const arranged = places.length === 0 ? [] : arrange(sql, places, values);
    const asked = this.#prefetched.find(text, arranged);
    if (asked !== undefined) return await asked;
    if (this.#toPost.isReadBy(text)) return await this.#ask(sql, values);
    const sent = this.#send(text, arranged);
    this.#prefetched.add(text, arranged, sent);
    const rows = await sent;
    for (const row of rows) asSqliteGives(row);
    return rows;
  }

  /** Sends a statement. If `values` is null, the text can hold several statements. */
  async #send<Answer = SqlRows>(text: string, values: unknown[] | null): Promise<Answer> {
    if (this.#lost !== null) throw this.#lost;
    if (this.#unanswered === 0) this.#sinceMs = systemClock.monotonicMs();
    this.#unanswered += 1;
    let given: ((error: unknown) => void) | null = null;
    try {
      const query = this.#query<Answer>(text, values);
      // A lost connection gives no answer, so `#recordLoss` rejects the promise.
      return await new Promise<Answer>((resolve, reject) => {
        given = reject;
        this.#waiting.add(reject);
        query.execute().then(resolve, reject);
      });
    } catch (error) {
      const failure = classifyError(error);
      if (failure instanceof ConnectionLost) this.#recordLoss(failure);
      const refusal = refusalOf(failure);
      if (refusal !== null) this.#onRefused(refusal);
      throw failure;
    } finally {
      if (given !== null) this.#waiting.delete(given);
      this.#unanswered -= 1;
      this.#answers += 1;
      this.#sinceMs = systemClock.monotonicMs();
      if (this.#unanswered === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  #query<Answer>(text: string, values: unknown[] | null): SQL.Query<Answer> {
    if (values === null) return this.#connection.unsafe<Answer>(text).simple();
    // The driver sends a plain text without values only after all earlier answers, and delays what follows. A plain COMMIT would cost two round trips
    // under the lock.
    if (text === "BEGIN") return this.#connection<Answer>`BEGIN`;
    if (text === "COMMIT") return this.#connection<Answer>`COMMIT`;
    return this.#connection.unsafe<Answer>(text, values);
  }

  #recordLoss(error: ConnectionLost): void {
    if (this.#lost !== null) return;
    this.#lost = error;
    for (const reject of [...this.#waiting]) reject(error);
    void this.#pool.close({ timeout: 0 }).catch(() => undefined);
  }
}

function eachAlone(rows: readonly SqlNames[]): [SqlNames][] {
  return rows.map((row) => [row]);
}
