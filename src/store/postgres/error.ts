/** PostgreSQL's errors as the port knows them. */
import { OutcomeUnknown, StoreUnavailable, UniqueViolation, WorkUndone } from "../port.ts";

/** The connection is gone, with all that was not committed. */
export class ConnectionLost extends StoreUnavailable {}

/** No connection came about. */
export class NotReached extends StoreUnavailable {}

/** A session has other limits than it was given: what a pooler answers for another session, say. */
export class LimitsNotKept extends StoreUnavailable {
  readonly code = "ERR_LIMITS_NOT_KEPT";
}

/** The server's disk takes nothing that needs new room. */
export class NoRoom extends StoreUnavailable {}

/** Whoever answers takes no writes, as a standby; another one may stand behind the same name. */
export class ReadOnly extends StoreUnavailable {
  readonly errno = "25006";
}

/** Two transactions stood in each other's way, and this one was undone. */
export class TransactionUndone extends StoreUnavailable {}

/**
 * SQLSTATE classes and codes (postgresql.org/docs/current/errcodes-appendix.html) that say the database itself cannot be used now: connection,
 * authorization, no such database or schema, no right, statements that a pooler mixed up, not enough of something, read only, object in use, intervention, system error, internal error.
 */
const UNAVAILABLE = /^(?:08|26000|28|3D|3F|42501|42P05|53|25006|55|57|58|XX)/;
const LOST = /^(?:08|57P0)/;
const UNDONE = /^(?:40001|40P01|55P03)$/;
/** A statement was prepared before a newer version changed its table. */
const PLANNED_BEFORE = "0A000";
/** A disk that is full. */
const FULL_DISK = "53100";
/** An earlier statement of the transaction failed. */
const FAILED_BEFORE = "25P02";
/** The server ends the connection with such a message, whatever its code says; the driver would answer each later statement with it too. */
const ENDS_CONNECTION = /^(?:FATAL|PANIC)$/;

/**
 * Of what a start fails with: the server is not there yet or takes nobody now, which passes by itself: it starts or ends, is full of connections,
 * has no room or takes no writes, as after a failover, or somebody holds a lock there. A name that nobody knows is among them, as that of a container that is not up.
 */
const AWAY = /^(?:08\d{3}|25006|57014|57P0[123]|53[1-3]00|55P03|40001|40P01)$/;
const AWAY_CODE =
  /^(?:ERR_POSTGRES_CONNECTION_(?:REFUSED|TIMEOUT|FAILED|CLOSED)$|ECONN|ETIMEDOUT|EHOST|ENET)/;

/** Whether what a start failed with, or what caused that, is worth another try in a moment. */
export function isAway(error: unknown): boolean {
  if (error instanceof OutcomeUnknown) return true;
  if (!(error instanceof StoreUnavailable)) return false;
  // It gave no answer, or was lost before a commit.
  const isSilent = [...causesOf(error)].some(
    (one) => one instanceof ConnectionLost && one.cause === undefined,
  );
  return isSilent || isUnreachable(error) || isTold(error, AWAY);
}

/** Whether nobody answered who comes; connections of before may go on all the same. */
export function isUnreachable(error: StoreUnavailable): boolean {
  return [...causesOf(error)].some(({ code }) => typeof code === "string" && AWAY_CODE.test(code));
}

/** Whether nobody is there who would have connections of before: one that begins has none, and one that ends may. */
export function isGone(error: StoreUnavailable): boolean {
  return [...causesOf(error)].some(
    ({ code, errno, message }) =>
      code === "ERR_POSTGRES_CONNECTION_REFUSED" ||
      code === "ECONNREFUSED" ||
      (errno === "57P03" && /starting up|in recovery mode/.test(message)),
  );
}

/** Whether the server gives no more connections, or this user or database none. */
export function isFull(error: unknown): boolean {
  return error instanceof StoreUnavailable && isTold(error, /^53300$/);
}

function isTold(error: StoreUnavailable, states: RegExp): boolean {
  return [...causesOf(error)].some(({ errno: state }) => typeof state === "string" && states.test(state));
}

/** The error and what caused it, as the driver tells of each. */
export function* causesOf(error: unknown): Generator<Error & { code?: unknown; errno?: unknown }> {
  for (let one = error; one instanceof Error; one = one.cause) yield one;
}

/** What the server refuses writes for, of a statement's failure: a full disk, also where the server ends the connection with it, or no writes at all; else null. */
export function refusalOf(told: unknown): NoRoom | ReadOnly | null {
  if (told instanceof NoRoom || told instanceof ReadOnly) return told;
  return told instanceof ConnectionLost && isTold(told, new RegExp(`^${FULL_DISK}$`))
    ? new NoRoom(told.message, { cause: told.cause })
    : null;
}

/** What a statement failed with, as the house tells it apart; what it does not know stays as it is. */
export function tellApart(error: unknown): unknown {
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
