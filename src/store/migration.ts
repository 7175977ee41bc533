/** The migrations in their order, their SQL packed into the executable. A released one is never edited. */
import base from "../../migrations/0001-base.sql" with { type: "text" };
import relay from "../../migrations/0002-relay.sql" with { type: "text" };
import event from "../../migrations/0003-event.sql" with { type: "text" };
import record from "../../migrations/0004-record.sql" with { type: "text" };
import people from "../../migrations/0005-people.sql" with { type: "text" };
import selling from "../../migrations/0006-selling.sql" with { type: "text" };
import mail from "../../migrations/0007-mail.sql" with { type: "text" };
import capture from "../../migrations/0008-capture.sql" with { type: "text" };
import client from "../../migrations/0009-client.sql" with { type: "text" };
import watch from "../../migrations/0010-watch.sql" with { type: "text" };
import lease from "../../migrations/0011-lease.sql" with { type: "text" };
import scheduleMark from "../../migrations/0012-schedule-mark.sql" with { type: "text" };
import eventForm from "../../migrations/0013-event-form.sql" with { type: "text" };
import signin from "../../migrations/0014-signin.sql" with { type: "text" };
import mailEnd from "../../migrations/0015-mail-end.sql" with { type: "text" };
import walk from "../../migrations/0016-walk.sql" with { type: "text" };
import erasure from "../../migrations/0017-erasure.sql" with { type: "text" };
import memory from "../../migrations/0018-memory.sql" with { type: "text" };
import stored from "../../migrations/0019-stored.sql" with { type: "text" };

export interface Migration {
  number: number;
  name: string;
  sql: string;
}

export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: "base", sql: base },
  { number: 2, name: "relay", sql: relay },
  { number: 3, name: "event", sql: event },
  { number: 4, name: "record", sql: record },
  { number: 5, name: "people", sql: people },
  { number: 6, name: "selling", sql: selling },
  { number: 7, name: "mail", sql: mail },
  { number: 8, name: "capture", sql: capture },
  { number: 9, name: "client", sql: client },
  { number: 10, name: "watch", sql: watch },
  { number: 11, name: "lease", sql: lease },
  { number: 12, name: "schedule-mark", sql: scheduleMark },
  { number: 13, name: "event-form", sql: eventForm },
  { number: 14, name: "signin", sql: signin },
  { number: 15, name: "mail-end", sql: mailEnd },
  { number: 16, name: "walk", sql: walk },
  { number: 17, name: "erasure", sql: erasure },
  { number: 18, name: "memory", sql: memory },
  { number: 19, name: "stored", sql: stored },
];
