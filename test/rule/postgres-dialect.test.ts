/** Differences between the two SQL dialects. Everything else stays unchanged. */
import { expect, test } from "bun:test";
import { MAX_SPAN, OF_ENVIRONMENT } from "../../src/engine/event/number-range.ts";
import { toPostgres } from "../../src/store/postgres/dialect.ts";

const TRANSLATED: readonly (readonly [what: string, sqlite: string, postgres: string, places?: readonly (string | number)[]])[] = [
  ["a counted value", "SELECT ?2, ?1", "SELECT $1, $2", [1, 0]],
  ["a value without a number is the next one", "SELECT ?, ?2, ?", "SELECT $1, $2, $3", [0, 1, 2]],
  ["a named value", "WHERE id = $id AND at < $atMs", "WHERE id = $1 AND at < $2", ["id", "atMs"]],
  ["a value that appears twice has a type in each place", "a = ?1 OR b = ?1", "a = $1 OR b = $2", [0, 0]],
  ["a value that is only compared with NULL is a text", "?1 IS NULL OR seq < ?1", "$1::text IS NULL OR seq < $2", [0, 0]],
  ["the same with NOT", "$at IS NOT NULL", "$1::text IS NOT NULL", ["at"]],
  ["a camelCase name", "SELECT environment_id AS environmentId", 'SELECT environment_id AS "environmentId"'],
  ["an index hint", "FROM event INDEXED BY event_ready WHERE seq = 1", "FROM event  WHERE seq = 1"],
  [
    "an index that is walked in an order that no other index has",
    "SELECT seq FROM event INDEXED BY event_of_relay WHERE event.name_key = ?1 AND seq < ?2 ORDER BY event.seq DESC LIMIT 2",
    "SELECT seq FROM event  WHERE event.name_key IN ($1, $2) AND seq < $3 ORDER BY event.name_key DESC, event.seq DESC LIMIT 2",
    [0, 0, 1],
  ],
  [
    "a walked index in a subquery with a limit",
    "SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_unhappy WHERE environment_id = $a AND state = 'dead' ORDER BY seq LIMIT $most)",
    "SELECT count(*) FROM (SELECT 1 FROM event  WHERE environment_id IN ($1, $2) AND state = 'dead' ORDER BY environment_id, seq LIMIT nullif($3, -1)) AS unnamed_1",
    ["a", "a", "most"],
  ],
  [
    "a walked index in a join, in the written order",
    "SELECT 1 FROM relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key WHERE relay_name.environment_id = ?1",
    "SELECT 1 FROM relay_name  JOIN event  ON event.name_key = ANY(ARRAY[relay_name.key]) WHERE relay_name.environment_id = $1",
    [0],
  ],
  [
    "a walked index with a value from a SELECT",
    "SELECT at FROM event INDEXED BY event_of_relay WHERE name_key = (SELECT key FROM relay_name WHERE name = ?1) ORDER BY seq LIMIT 1",
    "SELECT at FROM event  WHERE name_key = ANY(ARRAY[(SELECT key FROM relay_name WHERE name = $1)]) ORDER BY name_key, seq LIMIT 1",
    [0],
  ],
  [
    "a walked index with several values from a SELECT",
    "SELECT at FROM event INDEXED BY event_of_relay WHERE event.name_key IN (SELECT key FROM relay_name) AND event.seq < ?1 AND state = ?2 ORDER BY seq DESC LIMIT 9",
    "SELECT at FROM event  WHERE event.seq = ANY(ARRAY(SELECT led.seq FROM (SELECT key FROM relay_name) AS place (value) CROSS JOIN LATERAL (SELECT seq FROM event WHERE name_key = ANY(ARRAY[place.value]) AND seq < $1 ORDER BY name_key, seq LIMIT 5000) AS led)) AND event.seq < $2 AND state = $3 ORDER BY seq + 0 DESC LIMIT 9",
    [0, 0, 1],
  ],
  [
    "an index without an order, or with the order of something else",
    "SELECT 1 FROM event INDEXED BY event_of_relay WHERE name_key = ?1 UNION SELECT 2 FROM email INDEXED BY email_by_person WHERE person_id = ?2 ORDER BY seq, id",
    "SELECT 1 FROM event  WHERE name_key = $1 UNION SELECT 2 FROM email  WHERE person_id = $2 ORDER BY seq, id",
    [0, 1],
  ],
  ["an order of joins", "FROM a CROSS JOIN b AS c ON a.x = c.x", "FROM a  JOIN b AS c ON a.x = c.x"],
  ["a join without conditions is unchanged", "FROM a CROSS JOIN b WHERE a.x = b.x", "FROM a CROSS JOIN b WHERE a.x = b.x"],
  ["a comparison that accepts NULL", "a IS ?1", "a IS NOT DISTINCT FROM $1", [0]],
  ["the opposite comparison", "a IS NOT OLD.a", "a IS DISTINCT FROM  OLD.a"],
  ["text that is valid already", "a IS NULL AND b IS NOT NULL AND c IS TRUE", "a IS NULL AND b IS NOT NULL AND c IS TRUE"],
  ["text that is valid in both", "a IS NOT DISTINCT FROM b", "a IS NOT DISTINCT FROM b"],
  ["the greater of two", "max(a, min(b, c))", "greatest(a, least(b, c))"],
  ["the greatest of many rows", "SELECT max((SELECT a, b)) FROM x", "SELECT max((SELECT a, b)) FROM x"],
  ["a sum", "coalesce(sum(bytes), 0)", "coalesce(sum(bytes)::bigint, 0)"],
  ["a sum with a filter", "sum(a) FILTER (WHERE b = 1) AS c", "sum(a) FILTER (WHERE b = 1)::bigint AS c"],
  ["no limit", "LIMIT -1 OFFSET $most", "LIMIT ALL OFFSET $1", ["most"]],
  ["a limit that may be NULL", "LIMIT $most", "LIMIT nullif($1, -1)", ["most"]],
  ["a value in lower case", "lower(name) = lower($name)", 'lower(name) = lower($1 COLLATE "C")', ["name"]],
  ["a type", "CAST(a AS INTEGER), CAST(b AS TEXT), CAST(c AS BLOB)", "CAST(a AS bigint), CAST(b AS TEXT), CAST(c AS bytea)"],
  ["bytes", "x'00ff'", "'\\x00ff'::bytea"],
  ["a table without a name", "SELECT 1 FROM (SELECT 2) WHERE TRUE", "SELECT 1 FROM (SELECT 2) AS unnamed_1 WHERE TRUE"],
  ["a table with a name", "FROM (SELECT 2) AS two JOIN (SELECT 3) three ON TRUE", "FROM (SELECT 2) AS two JOIN (SELECT 3) three ON TRUE"],
  ["texts, quoted names and comments", `'a ?1 INDEXED BY x' || "aB" -- $no max(a, b)`, `'a ?1 INDEXED BY x' || "aB" -- $no max(a, b)`],
  ["a text with a quote in it", "'it''s ?1' = ?1", "'it''s ?1' = $1", [0]],
];

for (const [what, sqlite, postgres, places = []] of TRANSLATED)
  test(what, () => {
    expect(toPostgres(sqlite)).toEqual({ text: postgres, places });
    expect(toPostgres(sqlite)).toBe(toPostgres(sqlite));
  });

test("a query with several values from a SELECT takes more rows of each than a span contains", () => {
  const { text } = toPostgres(`SELECT seq FROM event INDEXED BY event_of_relay WHERE ${OF_ENVIRONMENT} AND seq < ? ORDER BY seq`);
  expect(Number(/ORDER BY name_key, seq LIMIT (\d+)\) AS led/.exec(text)?.[1])).toBeGreaterThan(MAX_SPAN);
});
