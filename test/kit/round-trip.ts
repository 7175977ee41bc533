/**
 * Counts round trips to PostgreSQL. A statement begins a round trip if its connection sends it after the answer of an earlier one of the same round
 * trip. Statements that are sent without waiting share one.
 */
import { PostgresConnection } from "../../src/store/postgres/connection.ts";

/** The round trips of each connection whose answers have arrived. */
const ended = new Map<PostgresConnection, number>();

for (const name of ["get", "all", "run", "runEach", "commit", "script"] as const) {
  const send = PostgresConnection.prototype[name] as (this: PostgresConnection, ...given: unknown[]) => Promise<unknown>;
  Object.assign(PostgresConnection.prototype, {
    [name](this: PostgresConnection, ...given: unknown[]) {
      const before = this.unanswered;
      const number = (ended.get(this) ?? 0) + 1;
      const answer = send.apply(this, given);
      // A read that was sent ahead sends nothing more.
      if (this.unanswered === before) return answer;
      return answer.finally(() => ended.set(this, Math.max(ended.get(this) ?? 0, number)));
    },
  });
}

const sum = (): number => [...ended.values()].reduce((all, one) => all + one, 0);

/** Returns the round trips of all connections of this process during `work`. */
export async function countRoundTrips(work: () => Promise<unknown>): Promise<number> {
  const before = sum();
  await work();
  return sum() - before;
}
