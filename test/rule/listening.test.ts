/** The URLs for the address on which the server listens, from the same machine and from another. */
import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { farHost, nearHost, originOf } from "../../src/base/listening.ts";
import { startApi } from "../kit/api-server.ts";

test.each([
  ["0.0.0.0", "http://127.0.0.1:4747", `http://${hostname()}:4747`],
  ["::", "http://[::1]:4747", `http://${hostname()}:4747`],
  ["::1", "http://[::1]:4747", "http://[::1]:4747"],
  ["10.0.0.7", "http://10.0.0.7:4747", "http://10.0.0.7:4747"],
])("%s has the URL %s on the machine, and %s from another", (host, near, far) => {
  expect(originOf(nearHost(host), 4747)).toBe(near);
  expect(originOf(farHost(host), 4747)).toBe(far);
});

test("a server on every address of its machine never gives 0.0.0.0 as its URL", async () => {
  await using api = await startApi({ mode: "server", host: "0.0.0.0", baseUrl: null });
  const { port } = new URL(api.base);
  const document = (await (await fetch(`http://127.0.0.1:${port}/openapi.json`)).json()) as { servers: object };
  expect(document.servers).toEqual([{ url: `http://127.0.0.1:${port}` }]);
});
