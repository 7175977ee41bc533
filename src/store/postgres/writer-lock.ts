/** Defines the advisory lock that all writers of a PostgreSQL database share. It ends with its transaction. */

/** The letters "rela" as a number. */
export const WRITER_LOCK = 0x72656c61;
export const LOCK = "SELECT pg_advisory_xact_lock(?1)";
