/**
 * Compares the first request that needs a route with the same request afterwards. The first one waits until the routes are loaded, and the service
 * finds its route. The framework routes the others. The tests use raw sockets, because `fetch` changes paths.
 */
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { type ApiServer, startApi } from "../kit/api-server.ts";

/** Sends a request on its own connection and returns the response without its time. `line` is the method and the path. */
function ask({ base, keys, cookie }: ApiServer, line: string, headers: readonly string[]): Promise<string> {
  const { port } = new URL(base);
  const sent = [`${line} HTTP/1.1`, "host: relay.example.test", "connection: close", ...headers]
    .join("\r\n")
    .replace("DEV_KEY", keys.dev)
    .replace("COOKIE", cookie);
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(`${sent}\r\n\r\n`, "latin1"));
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(heard.replace(/^date: .*\r\n/im, "")));
  });
}

const KEY = ["authorization: Bearer DEV_KEY"];
const SESSION = ["cookie: COOKIE"];
const E = "/api/apps/shop/development";

describe("the first request gets the same response as later ones", () => {
  test.each<[status: number, line: string, headers: readonly string[]]>([
    [200, `GET ${E}/relays?limit=2`, KEY],
    [200, `GET ${E}/relays`, SESSION],
    [200, "GET /api/apps", SESSION],
    [200, "GET /openapi.json", []],
    [200, "GET /", []],
    [200, "HEAD /", []],
    [400, `GET ${E}/relays?limit=x`, KEY],
    [400, `GET ${E}/relays`, [...KEY, "host: other.example.test"]],
    [400, `GET /x/..${E}/relays`, KEY],
    [400, `GET ${E}/x/../relays`, KEY],
    [400, `GET ${E}/./relays`, KEY],
    [400, `GET ${E}/events/a%2fb`, KEY],
    [400, `GET ${E}/events/%2e%2e`, KEY],
    [400, `GET ${E}/events/a\\b`, KEY],
    [400, `GET /api//apps/shop/development/relays`, KEY],
    [401, `GET ${E}/relays`, []],
    [401, `GET ${E}/persons/a/access/b`, []],
    [401, "GET /client/me", []],
    [404, `GET ${E}/events/%zz`, KEY],
    [404, `GET ${E}/events/caf%C3%A9`, KEY],
    [404, `DELETE ${E}/persons/none/tokens/a%2Fb`, KEY],
    [404, `GET ${E}/%72elays`, KEY],
    [404, `GET ${E}/relays/`, KEY],
    [404, `GET ${E}/nothing`, KEY],
    [404, "POST /api", ["content-length: 0"]],
    [200, `HEAD ${E}/relays`, KEY],
    [405, `PUT ${E}/relays`, [...KEY, "content-length: 0"]],
    [405, `OPTIONS ${E}/relays`, ["origin: https://shop.example"]],
    [204, "OPTIONS /client/me", ["origin: https://shop.example", "access-control-request-method: GET"]],
    [405, "DELETE /healthz", []],
    [200, "GET /healthz", []],
    [200, "GET /readyz", []],
  ])("%d: %s", async (status, line, headers) => {
    await using api = await startApi();
    const first = await ask(api, line, headers);
    expect(first).toStartWith(`HTTP/1.1 ${status} `);
    expect(await ask(api, line, headers)).toBe(first);
  });
});
