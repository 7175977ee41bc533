/** The one lock of all that write to a PostgreSQL: an advisory one, which ends with its transaction. */

/** "relay" in letters' numbers. */
export const WRITER_LOCK = 0x72656c61;
export const LOCK = "SELECT pg_advisory_xact_lock(?1)";
