/** RELAY_… variables that nothing reads, at the server's start and in `relay config`. */
import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import type { RunningService } from "../../src/interfaces/cli/io.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { listUnknownVariables } from "../../src/interfaces/cli/server/unknown-variable.ts";
import { runCommand } from "../kit/cli-io.ts";

test.each([
  ["RELAY_BASEURL", "RELAY_BASE_URL"],
  ["RELAY_TRUSTED_PROXIES", "RELAY_TRUSTED_PROXY"],
  ["RELAY_LIMIT_RELAY", "RELAY_LIMIT_RELAYS"],
  ["RELAY_MASTERKEY", "RELAY_MASTER_KEY"],
  ["RELAY_XYZ", null],
])("%s is unknown, and the nearest known name is %s", (name, nearest) => {
  expect(listUnknownVariables({ [name]: "1", PATH: "/bin" })).toEqual([{ name, nearest }]);
});

test("the variables of every option and of Kubernetes are known", () => {
  const names = COMMANDS.flatMap(({ options = [] }) => options.flatMap(({ env }) => env ?? []));
  const all = [...names, "RELAY_DEBUG", "RELAY_SERVICE_HOST", "RELAY_PORT_4747_TCP_ADDR"];
  expect(listUnknownVariables(Object.fromEntries(all.map((name) => [name, "1"])))).toEqual([]);
});

test("relay config names them without their values", async () => {
  const { said } = await runCommand(["config"], { cwd: tmpdir(), env: { RELAY_MASTERKEY: "hunter2" } });
  expect(said).toMatch(/RELAY_MASTERKEY +unknown, not used: did you mean RELAY_MASTER_KEY\? +RELAY_MASTERKEY/);
  expect(said).not.toContain("hunter2");
});

test("the server logs a warning for each at its start, without its value", async () => {
  const service = {
    url: "http://127.0.0.1:4747",
    baseUrl: "http://127.0.0.1:4747",
    port: 4747,
    findChangedCases: () => Promise.resolve([]),
    makeSigninLink: () => Promise.resolve(null),
    leave: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  } as unknown as RunningService;
  const { told } = await runCommand(["serve", "--data-dir", "/nonexistent/relay"], {
    cwd: tmpdir(),
    env: { RELAY_BASEURL: "https://hunter2.example.com" },
    startService: () => Promise.resolve(service),
  });
  expect(told).toContain("environment variable RELAY_BASEURL: unknown, not used: did you mean RELAY_BASE_URL?");
  expect(told).not.toContain("hunter2");
});
