/**
 * What is written of relays' health: each row as it is known here, where nobody else writes it; or, where nodes share the rows, what happened
 * here put into each row as it is by now, in the transaction that writes it.
 */
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Writer } from "../store/port.ts";
import {
  giveBackShare,
  goOnFrom,
  HEALTH,
  isNews,
  joinViews,
  type Known,
  knownOf,
  type RunCode,
  rowOf,
  type SharedView,
  takeShare,
} from "./known.ts";

interface Noted {
  id: string;
  known: Known;
}

interface RowWrite {
  write(tx: Writer): Promise<void>;
  /** It is durable. */
  done(): void;
  /** Nothing of it was written. */
  failed(): void;
}

export function writeRows(noted: readonly Noted[]): RowWrite {
  const rows = noted.map(({ id, known }) => ({ known, row: rowOf(id, known) }));
  return {
    write: async (tx) => {
      for (const { row } of rows) await HEALTH.update(tx, row);
    },
    done() {
      for (const { known, row } of rows) known.storedAcceptedAt = row.acceptedAt;
    },
    failed: () => undefined,
  };
}

interface SharedDeps {
  /** Where a time of the wall clock lies on the one that nobody sets. */
  on(wallMs: number): number;
  /** Told of each run that grew here, once all of it is known. */
  judge(relay: LiveRelay, code: RunCode): void;
}

export function shareRows(noted: readonly Noted[], { on, judge }: SharedDeps): RowWrite {
  const shares = noted.map((one) => ({ ...one, share: takeShare(one.known) }));
  const ids = JSON.stringify(noted.map(({ id }) => id));
  let rows: Map<string, SharedView>;
  return {
    write: async (tx) => {
      const stored = await HEALTH.all(tx, "WHERE id IN (SELECT value FROM json_each($ids))", { ids });
      rows = new Map(stored.map((row) => [row.id, knownOf(row)]));
      for (const { id, share } of shares) {
        const before = rows.get(id);
        const after = before === undefined ? undefined : joinViews(share, before);
        if (before === undefined || after === undefined || !isNews(before, after)) continue;
        await HEALTH.update(tx, rowOf(id, after));
        rows.set(id, after);
      }
    },
    done() {
      for (const { id, known, share } of shares) {
        const row = rows.get(id);
        if (row === undefined) continue;
        known.storedAcceptedAt = row.acceptedAt;
        goOnFrom(known, row, share, on);
        const grown = [...known.grown];
        known.grown.clear();
        for (const [code, relay] of grown) judge(relay, code);
      }
    },
    failed() {
      for (const { known, share } of shares) giveBackShare(known, share);
    },
  };
}
