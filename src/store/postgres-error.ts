/** PostgreSQL's errors as the port knows them. */
import { StoreUnavailable, UniqueViolation } from "./port.ts";

/** The connection is gone, with all that was not committed. */
export class ConnectionLost extends StoreUnavailable {}

/** Two transactions stood in each other's way, and this one was undone. */
export class TransactionUndone extends StoreUnavailable {}

/**
 * SQLSTATE classes and codes (postgresql.org/docs/current/errcodes-appendix.html) that say the database itself cannot be used now: connection,
 * authorization, no such database, no right, statements that a pooler mixed up, not enough of something, read only, object in use, intervention, system error, internal error.
 */
const UNAVAILABLE = /^(?:08|26000|28|3D|42501|42P05|53|25006|55|57|58|XX)/;
const LOST = /^(?:08|57P0)/;
const UNDONE = /^(?:40001|40P01|55P03)$/;
/** A statement was prepared before a newer version changed its table. */
const PLANNED_BEFORE = "0A000";

/** What a statement failed with, as the house tells it apart; what it does not know stays as it is. */
export function tellApart(error: unknown): unknown {
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
