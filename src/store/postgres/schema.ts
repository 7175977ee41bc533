/** The numbered files of PostgreSQL's schema, in their order. */
import whole from "../../../migrations/postgres/0039-whole.sql" with { type: "text" };
import writerCommit from "../../../migrations/postgres/0040-writer-commit.sql" with { type: "text" };
import recordTrigger from "../../../migrations/postgres/0041-record-trigger.sql" with { type: "text" };
import recordFile from "../../../migrations/postgres/0042-record-file.sql" with { type: "text" };
import nodeCompared from "../../../migrations/postgres/0043-node-compared.sql" with { type: "text" };
import cancelledRef from "../../../migrations/postgres/0044-cancelled-ref.sql" with { type: "text" };
import eventTrigger from "../../../migrations/postgres/0045-event-trigger.sql" with { type: "text" };
import eventBlock from "../../../migrations/postgres/0046-event-block.sql" with { type: "text" };
import goneSecret from "../../../migrations/postgres/0047-gone-secret.sql" with { type: "text" };
import promoted from "../../../migrations/postgres/0048-promoted.sql" with { type: "text" };
import planEnd from "../../../migrations/postgres/0049-plan-end.sql" with { type: "text" };
import movedEvent from "../../../migrations/postgres/0050-moved-event.sql" with { type: "text" };
import asReleased from "../../../migrations/postgres/0051-as-released.sql" with { type: "text" };
import arrival from "../../../migrations/postgres/0052-arrival.sql" with { type: "text" };
import holdRelease from "../../../migrations/postgres/0053-hold-release.sql" with { type: "text" };
import ownerNetwork from "../../../migrations/postgres/0054-owner-network.sql" with { type: "text" };
import movedPurchase from "../../../migrations/postgres/0055-moved-purchase.sql" with { type: "text" };
import limitWindow from "../../../migrations/postgres/0056-limit-window.sql" with { type: "text" };

interface PostgresMigration {
  /** As in SQLite. The first makes a whole schema, as it is with this number. */
  number: number;
  name: string;
  sql: string;
}

export const POSTGRES_MIGRATIONS: readonly PostgresMigration[] = [
  { number: 39, name: "whole", sql: whole },
  { number: 40, name: "writer-commit", sql: writerCommit },
  { number: 41, name: "record-trigger", sql: recordTrigger },
  { number: 42, name: "record-file", sql: recordFile },
  { number: 43, name: "node-compared", sql: nodeCompared },
  { number: 44, name: "cancelled-ref", sql: cancelledRef },
  { number: 45, name: "event-trigger", sql: eventTrigger },
  { number: 46, name: "event-block", sql: eventBlock },
  { number: 47, name: "gone-secret", sql: goneSecret },
  { number: 48, name: "promoted", sql: promoted },
  { number: 49, name: "plan-end", sql: planEnd },
  { number: 50, name: "moved-event", sql: movedEvent },
  { number: 51, name: "as-released", sql: asReleased },
  { number: 52, name: "arrival", sql: arrival },
  { number: 53, name: "hold-release", sql: holdRelease },
  { number: 54, name: "owner-network", sql: ownerNetwork },
  { number: 55, name: "moved-purchase", sql: movedPurchase },
  { number: 56, name: "limit-window", sql: limitWindow },
];
