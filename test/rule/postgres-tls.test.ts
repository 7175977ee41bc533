/** What each sslmode asks of a PostgreSQL server: its certificate's authority and name, or only that nobody between reads along. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/ground/database-url.ts";
import { StoreUnavailable } from "../../src/store/port.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { type Authority, makeAuthority } from "../kit/certificate.ts";
import { startPostgres } from "../kit/postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "relay-tls-"));
const ours = makeAuthority("Ours");
const theirs = makeAuthority("Theirs");
let server: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  for (const [name, { cert }] of Object.entries({ ours, theirs })) writeFileSync(join(folder, name), cert);
  server = await startPostgres();
}, 60_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Whether what is said there is said in secret, or why there is no connection. */
async function connect(mode: string, authority: "ours" | "theirs" | null): Promise<"TLS" | "plain" | string> {
  const url = new URL(server.url);
  url.hostname = "localhost";
  url.searchParams.set("sslmode", mode);
  if (authority !== null) url.searchParams.set("sslrootcert", join(folder, authority));
  const place = readDatabaseUrl(url.href) as DatabaseUrl;
  try {
    const connection = await PostgresConnection.open(place, "relay test");
    const row = await connection.get<{ said: string }>(
      "SELECT CASE WHEN ssl THEN 'TLS' ELSE 'plain' END AS said FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    );
    await connection.close();
    return row?.said ?? "";
  } catch (error) {
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect((error as Error).message).not.toContain(url.password);
    return (error as Error).message;
  }
}

const REFUSED = /^The database cannot be reached: /;

type Line = [mode: string, authority: "ours" | "theirs" | null, answer: string | RegExp];
const SERVERS: [what: string, certify: (by: Authority) => ReturnType<Authority["issue"]> | null, lines: Line[]][] = [
  [
    "of that name, by our authority",
    (by) => by.issue(["localhost"]),
    [
      ["disable", null, "plain"],
      ["prefer", null, "TLS"],
      ["require", null, "TLS"],
      ["verify-ca", "ours", "TLS"],
      ["verify-ca", "theirs", REFUSED],
      ["verify-ca", null, REFUSED],
      ["verify-full", "ours", "TLS"],
      ["verify-full", "theirs", REFUSED],
      ["verify-full", null, REFUSED],
    ],
  ],
  [
    "of another name, by our authority",
    (by) => by.issue(["db.example.com"]),
    [
      ["require", null, "TLS"],
      ["verify-ca", "ours", "TLS"],
      ["verify-full", "ours", REFUSED],
    ],
  ],
  [
    "that is over",
    (by) => by.issue(["localhost"], "20200102000000Z"),
    [
      ["require", null, "TLS"],
      ["verify-ca", "ours", REFUSED],
      ["verify-full", "ours", REFUSED],
    ],
  ],
  [
    "that there is none of",
    () => null,
    [
      ["disable", null, "plain"],
      ["prefer", null, "plain"],
      ["require", null, REFUSED],
      ["verify-ca", "ours", REFUSED],
      ["verify-full", "ours", REFUSED],
    ],
  ],
];

describe.each(SERVERS)("a server with a certificate %s", (_what, certify, lines) => {
  beforeAll(() => server.certify(certify(ours)), 60_000);

  test.each(lines)("sslmode=%s, authority %p: %p", async (mode, authority, answer) => {
    const found = await connect(mode, authority);
    if (typeof answer === "string") expect(found).toBe(answer);
    else expect(found).toMatch(answer);
  });
});
