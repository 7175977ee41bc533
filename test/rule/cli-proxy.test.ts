/** Commands against a server behind a proxy that does not reach it. */
import { afterAll, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { runCommand } from "../kit/cli-io.ts";

let failures = 0;
let status = 502;
const asked: string[] = [];
const proxy = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    asked.push(`${request.method} ${pathname}`);
    if (pathname !== "/api/key" && failures > 0) {
      failures -= 1;
      return new Response("<h1>Unavailable</h1>", { status, headers: { server: "nginx/1.24.0" } });
    }
    if (pathname === "/api/key") return Response.json({ app: "shop", environment: "development", owner: null, expiresAt: null });
    if (status === 0) return Response.json({ code: "not_recorded", message: "The database does not answer." }, { status: 503 });
    return Response.json({ items: [], next: null });
  },
});
afterAll(() => proxy.stop(true));
const url = `http://127.0.0.1:${proxy.port}`;

function relay(...line: string[]) {
  asked.length = 0;
  return runCommand(line, { cwd: tmpdir(), env: { RELAY_URL: url, RELAY_KEY: "relay_dev_key" } });
}

test.each([502, 503, 504])("a command that reads is retried after %i", async (one) => {
  [status, failures] = [one, 2];
  expect((await relay("problems", "list")).code).toBe(0);
  expect(asked.filter((line) => line.endsWith("/problems"))).toHaveLength(3);
});

test("a command names the proxy, its answer and what to check", async () => {
  [status, failures] = [502, 9];
  const { code, told } = await relay("problems", "list");
  expect([code, told]).toEqual([1, expect.stringContaining("service_not_running")]);
  expect(told).toContain(
    `A proxy (nginx/1.24.0) at ${url} answered 502 Bad Gateway: it does not reach the relay server. Check that relay serve runs, and that the proxy forwards to its host and port.`,
  );
});

test("a command that writes is sent once, and its result is unknown", async () => {
  [status, failures] = [504, 9];
  const { code, told } = await relay("relays", "pause", "orders");
  expect([code, told]).toEqual([1, expect.stringContaining("answered 504 Gateway Timeout")]);
  expect(told).toContain("It is unknown if the server did the work");
  expect(asked.filter((line) => line.startsWith("POST"))).toHaveLength(1);
});

test("a refusal of the server itself is no answer of a proxy", async () => {
  [status, failures] = [0, 0];
  const { told } = await relay("problems", "list");
  expect(told).toContain("The database does not answer.");
  expect(asked.filter((line) => line.endsWith("/problems"))).toHaveLength(1);
});
