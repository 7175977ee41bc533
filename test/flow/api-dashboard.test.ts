/** Tests the dashboard's files: the page at every deep link, immutable hashed files, no path outside them, and one strict policy. */
import { expect, test } from "bun:test";
import { startApi } from "../kit/api-server.ts";

test("serves the page at the root and at a browser's deep links, and never for a program's missing file", async () => {
  await using api = await startApi();
  const html = { headers: { accept: "text/html,*/*" } };
  for (const path of ["/", "/setup", "/apps/shop/development/relays/shop-orders"]) {
    const reply = await api.call(path, html);
    expect([path, reply.status, reply.headers.get("content-type")]).toEqual([path, 200, "text/html;charset=utf-8"]);
    expect(reply.headers.get("cache-control")).toBe("no-cache");
  }
  expect((await api.call("/apps/shop", { headers: { accept: "application/json" } })).json.code).toBe("not_found");
  expect((await api.call("/chunk-00000000.js", html)).json.code).toBe("not_found");
});

test("serves its files as immutable, and answers a matching ETag with 304", async () => {
  await using api = await startApi();
  const page = await api.call("/");
  const path = /src="(\/[^"]+\.js)"/.exec(page.text)?.[1] ?? "";
  const file = await api.call(path);
  expect(file.headers.get("content-type")).toStartWith("text/javascript");
  expect(file.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  for (const [address, etag] of [
    ["/", page.headers.get("etag")],
    [path, file.headers.get("etag")],
  ] as const) {
    const again = await api.call(address, { headers: { "if-none-match": etag ?? "" } });
    expect([again.status, again.text]).toEqual([304, ""]);
  }
});

test("serves a page without inline scripts or styles, and a policy that allows none", async () => {
  await using api = await startApi();
  const page = await api.call("/");
  expect(page.text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=/i);
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self'; style-src 'self';");
});

test("finds no file for a path that leaves the folder", async () => {
  await using api = await startApi();
  const answers = {
    "/%2e%2e/package.json": 404,
    // The router rejects two slashes in a row before it looks for a file.
    "/....//etc/passwd": 400,
    "/web/index.html": 404,
    "/index.html": 404,
  };
  for (const [path, status] of Object.entries(answers)) {
    const reply = await api.call(path);
    expect([path, reply.status]).toEqual([path, status]);
  }
});
