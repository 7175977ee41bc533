/**
 * Counts round trips to PostgreSQL. A statement begins a round trip if its connection sends it after the answer of an earlier one of the same round
 * trip. Statements that are sent without waiting share one.
 */
import { PostgresConnection } from "../../src/store/postgres/connection.ts";

/** The round trips of each connection whose answers have arrived. */
const ended = new Map<PostgresConnection, number>();

/** Counts the answers of a method that sends a statement. */
function counted<Sender extends (...given: never[]) => Promise<unknown>>(connection: PostgresConnection, send: Sender): Sender {
  return ((...given: Parameters<Sender>) => {
    const before = connection.unanswered;
    const number = (ended.get(connection) ?? 0) + 1;
    const answer = send(...given);
    // A read that was sent ahead sends nothing more.
    if (connection.unanswered === before) return answer;
    return answer.finally(() => ended.set(connection, Math.max(ended.get(connection) ?? 0, number)));
  }) as Sender;
}

const open = PostgresConnection.open.bind(PostgresConnection);
PostgresConnection.open = async (...given) => {
  const connection = await open(...given);
  for (const name of ["get", "all", "run", "runEach", "commit", "script"] as const)
    Object.assign(connection, { [name]: counted(connection, connection[name].bind(connection) as never) });
  const { get, all } = connection.prefetch;
  Object.assign(connection.prefetch, { get: counted(connection, get as never), all: counted(connection, all as never) });
  return connection;
};

const sum = (): number => [...ended.values()].reduce((all, one) => all + one, 0);

/** Returns the round trips of all connections of this process during `work`. */
export async function countRoundTrips(work: () => Promise<unknown>): Promise<number> {
  const before = sum();
  await work();
  return sum() - before;
}
