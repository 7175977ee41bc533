/**
 * A proxy that the environment names is another machine. A command's request to a server on this machine, including its key, never passes the proxy.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { startCli } from "../kit/cli-process.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

let api: ApiServer;
let cwd: string;
/** Everything that the proxy received. */
let heard = "";
const proxy = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    data(socket, bytes) {
      heard += bytes.toString();
      socket.end("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
    },
  },
});

beforeAll(async () => {
  api = await startApi();
  cwd = mkdtempSync(join(tmpdir(), "relay-proxy-"));
  mkdirSync(join(cwd, "relays"));
  const verify = { scheme: "shared_token", header: "X-Token" };
  writeFileSync(join(cwd, "relays", "shop.json"), JSON.stringify(receiverDefinition({ name: "shop", verify })));
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  proxy.stop(true);
  rmSync(cwd, { recursive: true });
});

async function run(line: string[], more: Record<string, string>): Promise<string> {
  const through = `http://127.0.0.1:${proxy.port}`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  const env = { ...Object.fromEntries(names.map((name) => [name, through])), NO_PROXY: "", no_proxy: "", ...more };
  await using command = startCli([MAIN, ...line], { cwd, env, command: [process.execPath] });
  const code = await command.exited;
  return `${code} ${command.lines().join("\n")}`;
}

describe("with HTTP_PROXY in the environment", () => {
  const port = () => new URL(api.base).port;
  const remote = (host: string) => ({ RELAY_URL: `http://${host}:${port()}`, RELAY_KEY: api.keys.dev });

  for (const host of ["127.0.0.1", "localhost"]) {
    test(`a command with a key connects to ${host} directly`, async () => {
      expect(await run(["whoami"], remote(host))).toContain("shop");
      expect(heard).toBe("");
    });
  }

  test("a health check asks the server and not the proxy", async () => {
    expect(await run(["ready", "--port", port()], {})).toBe("0 ready");
    expect(heard).toBe("");
  });

  test("the proxy's response never counts as the server's when no server listens", async () => {
    expect(await run(["ready", "--port", "1"], {})).toStartWith("1 ");
    expect(heard).toBe("");
  });

  test("an event that is sent by hand goes to the server, and its token to no other host", async () => {
    const line = ["send", "shop", "--service-dir", cwd, "--url", `${api.base}/hooks/shop/shop`];
    expect(await run(line, { RELAY_SECRET: "a-token-of-some-length-0123456789" })).toContain("unknown_receiver");
    expect(heard).toBe("");
  });
});
