/** A command on a server with an untrusted certificate reports the certificate, not a missing answer. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { runCommand } from "../kit/cli-io.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-certificate-"));
afterAll(() => rmSync(cwd, { recursive: true }));
const authority = makeAuthority("Home");

const CASES: [string, { cert: string; key: string }][] = [
  ["of a private authority", authority.issue(["localhost"])],
  ["of another host", authority.issue(["other.example.com"])],
  ["that has expired", authority.issue(["localhost"], "20210101000000Z")],
];
test.each(CASES)("names a certificate %s, and says what to do", async (_which, tls) => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response("{}") });
  try {
    const url = `https://localhost:${server.port}`;
    const { code, told } = await runCommand(["events", "list", "--url", url], { cwd, env: { RELAY_KEY: "relay_dev_x" } });
    expect(code).toBe(1);
    expect(told).toContain(`This machine does not trust the certificate of ${url}`);
    expect(told).toContain("NODE_EXTRA_CA_CERTS");
    expect(told).not.toContain("No server answers");
  } finally {
    await server.stop(true);
  }
});

test("a server without TLS has no certificate to renew", async () => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("{}") });
  try {
    const url = `https://localhost:${server.port}`;
    const { code, told } = await runCommand(["events", "list", "--url", url], { cwd, env: { RELAY_KEY: "relay_dev_x" } });
    expect(code).toBe(1);
    expect(told).toContain(`No server answers at ${url}`);
    expect(told).not.toContain("certificate");
  } finally {
    await server.stop(true);
  }
});
