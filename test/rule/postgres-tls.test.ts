/** The requirements of each sslmode on a PostgreSQL server: the authority and name of its certificate, or only encryption. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { describeError } from "../../src/interfaces/cli/refusal-text.ts";
import { StoreUnavailable } from "../../src/store/port.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { connectionOptions } from "../../src/store/postgres/connection-option.ts";
import { type Authority, makeAuthority } from "../kit/certificate.ts";
import { startPostgres } from "../kit/postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "relay-tls-"));
const ours = makeAuthority("Ours");
const theirs = makeAuthority("Theirs");
let server: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  for (const [name, { cert }] of Object.entries({ ours, theirs })) writeFileSync(join(folder, name), cert);
  server = await startPostgres();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Connects and returns whether the connection is encrypted, or what the error says to do. */
async function connect(mode: string, authority: "ours" | "theirs" | "system" | null): Promise<"TLS" | "plain" | string> {
  const url = new URL(server.url);
  url.hostname = "localhost";
  url.searchParams.set("sslmode", mode);
  if (authority !== null) url.searchParams.set("sslrootcert", authority === "system" ? authority : join(folder, authority));
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
    return describeError(error).message.replace(/^The database cannot be reached: .*?\. To do: (.*)\.$/, "$1");
  }
}

const UNKNOWN = "let sslrootcert name a PEM file with the certificate authority of the server";
const OTHER_NAME = "use the host name in the server's certificate, or sslmode=verify-ca";
const OVER = "give the server a certificate that is valid now";
const NO_TLS = "enable TLS on the server (ssl = on), or use sslmode=disable on a private network";

type Line = [mode: string, authority: "ours" | "theirs" | "system" | null, answer: string];
const SERVERS: [what: string, certify: (by: Authority) => ReturnType<Authority["issue"]> | null, lines: Line[]][] = [
  [
    "of that name, from our authority",
    (by) => by.issue(["localhost"]),
    [
      ["disable", null, "plain"],
      ["prefer", null, "TLS"],
      ["require", null, "TLS"],
      ["verify-ca", "ours", "TLS"],
      ["verify-ca", "theirs", UNKNOWN],
      ["verify-ca", null, UNKNOWN],
      ["verify-full", "ours", "TLS"],
      ["verify-full", "theirs", UNKNOWN],
      ["verify-full", null, UNKNOWN],
      // Our authority is not among this machine's.
      ["verify-full", "system", UNKNOWN],
    ],
  ],
  [
    "of another name, from our authority",
    (by) => by.issue(["db.example.com"]),
    [
      ["require", null, "TLS"],
      ["verify-ca", "ours", "TLS"],
      ["verify-full", "ours", OTHER_NAME],
    ],
  ],
  [
    "that has expired",
    (by) => by.issue(["localhost"], "20200102000000Z"),
    [
      ["require", null, "TLS"],
      ["verify-ca", "ours", OVER],
      ["verify-full", "ours", OVER],
    ],
  ],
  [
    "that does not exist",
    () => null,
    [
      ["disable", null, "plain"],
      ["prefer", null, "plain"],
      ["require", null, NO_TLS],
      ["verify-ca", "ours", NO_TLS],
      ["verify-full", "ours", NO_TLS],
    ],
  ],
];

describe.each(SERVERS)("a server with a certificate %s", (_what, certify, lines) => {
  beforeAll(() => server.certify(certify(ours)), 60_000);

  test.each(lines)("sslmode=%s, authority %p: %p", async (mode, authority, answer) => {
    const found = await connect(mode, authority);
    expect(found).toBe(answer);
  });
});

test("sslrootcert=system means this machine's root certificates, and trusts each of them", () => {
  const place = readDatabaseUrl("postgres://r@h/d?sslmode=verify-full&sslrootcert=system") as DatabaseUrl;
  const { tls } = connectionOptions(place) as { tls: { ca: string[]; rejectUnauthorized: boolean } };
  expect(tls.ca.length).toBeGreaterThan(0);
  expect({ ...tls, ca: tls.ca.toSorted() }).toEqual({ ca: getCACertificates("system").toSorted(), rejectUnauthorized: true });
});

test("a missing file of authorities is reported as the one that sslrootcert names", async () => {
  rmSync(join(folder, "theirs"));
  expect(await connect("verify-ca", "theirs")).toBe("check the file that sslrootcert names");
});
