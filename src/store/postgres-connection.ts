/**
 * One PostgreSQL connection, speaking the port's Reader. Statements go out in the order they are asked for and none waits for the answer of the
 * one before. It decides how PostgreSQL's errors are told apart; a connection that was lost, or that gives no answer, is never used again.
 */
import { SQL } from "bun";
import { systemClock } from "../ground/clock.ts";
import type { DatabaseUrl } from "../ground/database-url.ts";
import { type SqlArguments, type SqlNames, StoreUnavailable, UniqueViolation } from "./port.ts";
import { toPostgres, toPostgresRows } from "./postgres-dialect.ts";
import { arrange, asSqliteGives } from "./postgres-value.ts";
import type { GroupConnection } from "./transaction.ts";

/** How long a statement may take on the server, which ends it then, and how long its answer is waited for. */
const STATEMENT_TIMEOUT_MS = 30_000;
const ANSWER_WITHIN_MS = 35_000;
/** The server ends a transaction whose process hangs, because others wait for its locks. */
const IDLE_IN_TRANSACTION_MS = 5_000;
/** The same for one that waits for another's. */
const LOCK_TIMEOUT_MS = 15_000;
const CONNECT_WITHIN_S = 5;

/** What `Bun.SQL` is told of where the database is; made for a connection and kept nowhere, since it holds the password. */
export function connectionOptions(place: DatabaseUrl): SQL.PostgresOrMySQLOptions {
  const { host, port, user, database, password, sslMode, sslRootCert } = place;
  return {
    adapter: "postgres",
    hostname: host,
    port,
    username: user,
    password,
    database,
    max: 1,
    tls: sslRootCert === null ? sslMode : authorities(sslRootCert, sslMode === "verify-full"),
  };
}

/** `checksName`: the certificate is the host's own, not only one of theirs. */
function authorities(
  file: string,
  checksName: boolean,
): Bun.TLSOptions & { checkServerIdentity?: () => undefined } {
  const tls = { ca: Bun.file(file), rejectUnauthorized: true };
  return checksName ? tls : { ...tls, checkServerIdentity: () => undefined };
}

/** Rows of one INSERT: few sizes, as each is a statement that is prepared. */
const ROWS_AT_ONCE: readonly number[] = [32, 16, 8, 4, 2];

/** The connection is gone, with all that was not committed. */
export class ConnectionLost extends StoreUnavailable {}

/** Two transactions stood in each other's way, and this one was undone. */
export class TransactionUndone extends StoreUnavailable {}

type SqlRows = Record<string, unknown>[] & { count: number | null; command: string | null };

export class PostgresConnection implements GroupConnection {
  readonly #pool: SQL;
  readonly #connection: Awaited<ReturnType<SQL["reserve"]>>;
  #lost: ConnectionLost | null = null;
  /** Of statements that nobody awaits: the first that failed. */
  #failed: unknown = null;
  #posted: Promise<void> = Promise.resolve();
  readonly #toPost = new Map<string, SqlArguments[]>();
  #era = 0;
  /** Statements without an answer yet, and since when there is any. */
  #unanswered = 0;
  #sinceMs = 0;
  #answers = 0;
  readonly #waiting = new Set<(error: unknown) => void>();
  #onIdle: (() => void)[] = [];

  private constructor(pool: SQL, connection: Awaited<ReturnType<SQL["reserve"]>>) {
    this.#pool = pool;
    this.#connection = connection;
  }

  /** Throws StoreUnavailable where nobody answers or the server refuses. `name`: what the server's own lists call it. */
  static async open(place: DatabaseUrl, name: string): Promise<PostgresConnection> {
    const pool = new SQL({
      ...connectionOptions(place),
      bigint: true,
      idleTimeout: 0,
      maxLifetime: 0,
      connectionTimeout: CONNECT_WITHIN_S,
      connection: {
        application_name: name,
        statement_timeout: STATEMENT_TIMEOUT_MS,
        idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
        lock_timeout: LOCK_TIMEOUT_MS,
        default_transaction_isolation: "read committed",
        timezone: "UTC",
        synchronous_commit: "on",
      },
    });
    try {
      return new PostgresConnection(pool, await pool.reserve());
    } catch (error) {
      void pool.close({ timeout: 0 }).catch(() => undefined);
      const { message } = tellApart(error) as Error;
      throw new StoreUnavailable(`The database cannot be reached: ${message}`, { cause: error });
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
    return (await this.#ask(sql, values)).count ?? 0;
  }

  /** It goes out with others of its kind, before whatever else is asked next. */
  async post(sql: string, ...values: SqlArguments): Promise<void> {
    const rows = this.#toPost.get(sql);
    if (rows === undefined) this.#toPost.set(sql, [values]);
    else rows.push(values);
  }

  #flush(): void {
    if (this.#toPost.size === 0) return;
    const posted = [...this.#toPost];
    this.#toPost.clear();
    for (const [sql, rows] of posted)
      for (const sent of this.#sendRows(sql, rows))
        this.#posted = sent.then(() => undefined, this.#noteFailure());
  }

  /** As few statements as they fit into: what costs is the statement, not its rows. */
  #sendRows(sql: string, rows: readonly SqlArguments[]): Promise<SqlRows>[] {
    const sent: Promise<SqlRows>[] = [];
    for (let at = 0; at < rows.length; ) {
      const size = ROWS_AT_ONCE.find((most) => most <= rows.length - at) ?? 1;
      const many = size === 1 ? null : toPostgresRows(sql, size);
      const { text, places } = many ?? toPostgres(sql);
      const some = rows.slice(at, at + (many === null ? 1 : size));
      sent.push(
        this.#send(text, places.length === 0 ? [] : some.flatMap((values) => arrange(sql, places, values))),
      );
      at += some.length;
    }
    return sent;
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

  /** Of what is undone now: what was posted is not sent any more, and what the rest of it may yet answer is nobody's. */
  discard(): void {
    this.#toPost.clear();
    this.#failed = null;
    this.#era += 1;
  }

  #noteFailure(): (error: unknown) => void {
    const era = this.#era;
    return (error) => {
      if (era === this.#era) this.#failed ??= error;
    };
  }

  async runEach(sql: string, rows: readonly SqlNames[]): Promise<number> {
    this.#flush();
    const answers = await Promise.all(
      this.#sendRows(
        sql,
        rows.map((row): [SqlNames] => [row]),
      ),
    );
    return answers.reduce((sum, { count }) => sum + (count ?? 0), 0);
  }

  exec(sql: string): void {
    this.#flush();
    this.#send(sql, []).catch(this.#noteFailure());
  }

  /** Several statements without values in one go; answers the rows of each. */
  async script(sql: string): Promise<SqlRows[]> {
    this.#flush();
    return await this.#send<SqlRows[]>(sql, null);
  }

  /** The first failure of a statement that nobody awaited, which is forgotten by that. */
  takeFailure(): unknown {
    const failed = this.#failed;
    this.#failed = null;
    return failed;
  }

  get inTransaction(): boolean {
    return this.#lost === null;
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** Statements that wait for their answers. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /** How many came. */
  get answers(): number {
    return this.#answers;
  }

  /** Gives it up where an answer is overdue: a server that is cut off says nothing. */
  look(): void {
    if (this.#unanswered === 0 || systemClock.monotonicMs() - this.#sinceMs < ANSWER_WITHIN_MS) return;
    this.#lose(new ConnectionLost(`The database gave no answer within ${ANSWER_WITHIN_MS / 1_000} s.`));
  }

  /** Resolves once every statement has its answer. */
  async idle(): Promise<void> {
    if (this.#unanswered > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async close(): Promise<void> {
    this.#lost ??= new ConnectionLost("The connection is closed.");
    await this.#pool.close({ timeout: 0 }).catch(() => undefined);
  }

  async #ask(sql: string, values: SqlArguments): Promise<SqlRows> {
    this.#flush();
    const { text, places } = toPostgres(sql);
    const rows = await this.#send(text, places.length === 0 ? [] : arrange(sql, places, values));
    for (const row of rows) asSqliteGives(row);
    return rows;
  }

  /** `values` null: several statements, which take none. */
  async #send<Answer = SqlRows>(text: string, values: unknown[] | null): Promise<Answer> {
    if (this.#lost !== null) throw this.#lost;
    if (this.#unanswered === 0) this.#sinceMs = systemClock.monotonicMs();
    this.#unanswered += 1;
    let given: ((error: unknown) => void) | null = null;
    try {
      const query =
        values === null ? this.#connection.unsafe(text).simple() : this.#connection.unsafe(text, values);
      // What is lost has no answer: who waits is told by `#lose`.
      const lost = new Promise<never>((_, reject) => {
        given = reject;
        this.#waiting.add(reject);
      });
      return await Promise.race<Answer>([query.execute(), lost]);
    } catch (error) {
      const told = tellApart(error);
      if (told instanceof ConnectionLost) this.#lose(told);
      throw told;
    } finally {
      if (given !== null) this.#waiting.delete(given);
      this.#unanswered -= 1;
      this.#answers += 1;
      this.#sinceMs = systemClock.monotonicMs();
      if (this.#unanswered === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  #lose(error: ConnectionLost): void {
    if (this.#lost !== null) return;
    this.#lost = error;
    for (const reject of [...this.#waiting]) reject(error);
    void this.#pool.close({ timeout: 0 }).catch(() => undefined);
  }
}

/**
 * SQLSTATE classes and codes (postgresql.org/docs/current/errcodes-appendix.html) that say the database itself cannot be used now: connection,
 * authorization, no such database, not enough of something, read only, object in use, intervention, system error, internal error.
 */
const UNAVAILABLE = /^(?:08|28|3D|53|25006|55|57|58|XX)/;
const LOST = /^(?:08|57P0)/;
const UNDONE = /^(?:40001|40P01|55P03)$/;
/** A statement was prepared before a newer version changed its table. */
const PLANNED_BEFORE = "0A000";

function tellApart(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const {
    code,
    errno: state,
    constraint,
  } = error as { code?: unknown; errno?: unknown; constraint?: unknown };
  const options = { cause: error };
  if (typeof state === "string" && /^[0-9A-Z]{5}$/.test(state)) {
    const message = `${error.message} (${state}).`;
    if (state === "23505") return new UniqueViolation(`${error.message} (${String(constraint)})`, options);
    if (UNDONE.test(state)) return new TransactionUndone(message, options);
    if (LOST.test(state) || (state === PLANNED_BEFORE && error.message.includes("cached plan")))
      return new ConnectionLost(message, options);
    // The server ends a transaction that was idle too long together with its connection.
    if (state === "25P03" || state === "25P04") return new ConnectionLost(message, options);
    return UNAVAILABLE.test(state) ? new StoreUnavailable(message, options) : error;
  }
  if (
    typeof code === "string" &&
    /^ERR_POSTGRES_(?:CONNECTION|IDLE|LIFETIME|TLS|AUTHENTICATION|UNSUPPORTED_AUTH|NOT_TAGGED)/.test(code)
  )
    return new ConnectionLost(`${error.message} (${code}).`, options);
  return typeof code === "string" &&
    /^(?:ECONN|EPIPE|ENOTFOUND|ETIMEDOUT|EHOST|ENET|DNS_|ERR_TLS|CERT_|DEPTH_|SELF_SIGNED|UNABLE_)/.test(code)
    ? new ConnectionLost(`${error.message} (${code}).`, options)
    : error;
}
