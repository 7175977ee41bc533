/** Maps PostgreSQL's errors to the port's. */
import { OutcomeUnknown, StoreUnavailable, UniqueViolation, WorkUndone } from "../port.ts";

/** The connection is lost, with everything that was not committed. */
export class ConnectionLost extends StoreUnavailable {}

/** No connection could be opened. */
export class NotReached extends StoreUnavailable {}

/** A session has other limits than were set, for example because a pooler answers from another session. */
export class LimitsNotKept extends StoreUnavailable {
  readonly code = "ERR_LIMITS_NOT_KEPT";
}

/** A server that this service cannot use. */
export class UnfitServer extends Error {}

/** The server's disk has no space for a write that needs some. */
export class NoRoom extends StoreUnavailable {}

/** The server takes no writes, as a standby. The same name may lead to another server later. */
export class ReadOnly extends StoreUnavailable {
  readonly errno = "25006";
}

/** The server rolled this transaction back because it conflicted with another one. */
export class TransactionUndone extends StoreUnavailable {}

/**
 * SQLSTATE classes and codes of a database that cannot be used now (postgresql.org/docs/current/errcodes-appendix.html): connection, authorization,
 * missing database or schema, missing right, statements mixed up by a pooler, lack of a resource, read only, object in use, intervention, system
 * error, internal error.
 */
const UNAVAILABLE = /^(?:08|26000|28|3D|3F|42501|42P05|53|25006|55|57|58|XX)/;
const LOST = /^(?:08|57P0)/;
const UNDONE = /^(?:40001|40P01|55P03)$/;
/** The SQLSTATE of a statement that was prepared before a migration changed its table. */
const PLANNED_BEFORE = "0A000";
/** The SQLSTATE of a full disk. */
const FULL_DISK = "53100";
/** The SQLSTATE of a statement that follows a failed one in its transaction. */
const FAILED_BEFORE = "25P02";
/** Severities with which the server ends the connection, for any code. The driver would fail each later statement with such an error too. */
const ENDS_CONNECTION = /^(?:FATAL|PANIC)$/;

/**
 * Codes of a failed start that a later attempt can pass. The server starts or stops, has no free connection or disk space, takes no writes after a
 * failover, or waits for a lock. An unknown host name is among them, because its container may not be up yet.
 */
const AWAY = /^(?:08\d{3}|25006|57014|57P0[123]|53[1-3]00|55P03|40001|40P01)$/;
const AWAY_CODE =
  /^(?:ERR_POSTGRES_CONNECTION_(?:REFUSED|TIMEOUT|FAILED|CLOSED)$|ECONN|ETIMEDOUT|EHOST|ENET)/;

/** Returns whether another attempt to start may succeed after this error. */
export function isAway(error: unknown): boolean {
  if (error instanceof OutcomeUnknown) return true;
  if (!(error instanceof StoreUnavailable)) return false;
  // A ConnectionLost without a cause means no answer, or a loss before a commit.
  const isSilent = [...causesOf(error)].some(
    (one) => one instanceof ConnectionLost && one.cause === undefined,
  );
  return isSilent || isUnreachable(error) || isTold(error, AWAY);
}

/** Returns whether no new connection could be opened. Existing connections may still work. */
export function isUnreachable(error: StoreUnavailable): boolean {
  return [...causesOf(error)].some(({ code }) => typeof code === "string" && AWAY_CODE.test(code));
}

/** Returns whether the server has lost all its connections, because it refuses new ones or is starting. If it is stopping, it may still have some. */
export function isGone(error: StoreUnavailable): boolean {
  return [...causesOf(error)].some(
    ({ code, errno, message }) =>
      code === "ERR_POSTGRES_CONNECTION_REFUSED" ||
      code === "ECONNREFUSED" ||
      (errno === "57P03" && /starting up|in recovery mode/.test(message)),
  );
}

/** Returns whether the server, this user or this database has no free connection. */
export function isFull(error: unknown): boolean {
  return error instanceof StoreUnavailable && isTold(error, /^53300$/);
}

function isTold(error: StoreUnavailable, states: RegExp): boolean {
  return [...causesOf(error)].some(({ errno: state }) => typeof state === "string" && states.test(state));
}

/** Yields the error and its causes, with the driver's fields. */
export function* causesOf(error: unknown): Generator<Error & { code?: unknown; errno?: unknown }> {
  for (let one = error; one instanceof Error; one = one.cause) yield one;
}

/**
 * Returns the error as NoRoom or ReadOnly if the server refuses writes, else null. A full disk also counts if the server ended the connection with
 * it.
 */
export function refusalOf(error: unknown): NoRoom | ReadOnly | null {
  if (error instanceof NoRoom || error instanceof ReadOnly) return error;
  return error instanceof ConnectionLost && isTold(error, new RegExp(`^${FULL_DISK}$`))
    ? new NoRoom(error.message, { cause: error.cause })
    : null;
}

/** Maps a statement's error to a class of the port or of this file. Returns an unknown error unchanged. */
export function classifyError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const {
    code,
    errno: state,
    constraint,
    severity,
  } = error as { code?: unknown; errno?: unknown; constraint?: unknown; severity?: unknown };
  const options = { cause: error };
  if (typeof state === "string" && /^[0-9A-Z]{5}$/.test(state)) {
    const message = `${error.message} (${state}).`;
    if (typeof severity === "string" && ENDS_CONNECTION.test(severity))
      return new ConnectionLost(message, options);
    if (state === "23505") return new UniqueViolation(`${error.message} (${String(constraint)})`, options);
    if (UNDONE.test(state)) return new TransactionUndone(message, options);
    if (state === FULL_DISK) return new NoRoom(message, options);
    if (state === FAILED_BEFORE) return new WorkUndone(message, options);
    if (state === "25006") return new ReadOnly(message, options);
    if (LOST.test(state) || (state === PLANNED_BEFORE && error.message.includes("cached plan")))
      return new ConnectionLost(message, options);
    // The server ends an idle or long transaction together with its connection.
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
