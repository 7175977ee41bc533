/** Mails are kept for 90 days, whatever became of them. Their caps look back a day at most. */
import { EMAIL_RETENTION_MS } from "../ground/limit.ts";
import type { Writer } from "../store/port.ts";
import { trimAfter, type WalkedTable } from "./row-walk.ts";

const EMAIL: WalkedTable = {
  name: "email",
  at: "created_at",
  keptMs: `${EMAIL_RETENTION_MS}`,
  shortestKeptMs: EMAIL_RETENTION_MS,
};

/** Trims the next mails after `seq`; answers where to go on, or null. */
export function trimEmails(tx: Writer, seq: number, nowMs: number): Promise<number | null> {
  return trimAfter(tx, EMAIL, seq, nowMs);
}
