/** Tests pages of local development: files of service/public/ are served at /public/, on a host name without the dashboard's session. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let folder: string;
let pages: string;
let running: RunningService;
let port: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "relay-public-"));
  pages = join(folder, "service", "public");
  await mkdir(join(pages, "shop", ".hidden"), { recursive: true });
  await mkdir(join(pages, "bare"), { recursive: true });
  await writeFile(join(pages, "index.html"), "<p>start</p>");
  await writeFile(join(pages, "shop", "index.html"), "<p>shop</p>");
  await writeFile(join(pages, "shop", "a b%20c.css"), "p{}");
  await writeFile(join(pages, "app.js"), "1");
  await writeFile(join(pages, ".env"), "secret");
  await writeFile(join(pages, "shop", ".hidden", "x.txt"), "secret");
  await writeFile(join(folder, "service", "catalog.json"), "{}");
  await writeFile(join(folder, "outside.txt"), "secret");
  await symlink(join(folder, "outside.txt"), join(pages, "out.txt"));
  await symlink(join(folder, "service"), join(pages, "up"));
  await symlink(join(pages, ".env"), join(pages, "env.txt"));
  await symlink(join(pages, "app.js"), join(pages, "same.js"));
  running = await startRunningService({
    config: { mode: "local", baseUrl: null, serviceDir: join(folder, "service") },
    environments: ["local"],
  });
  port = running.service.port;
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const ask = (path: string, name = "localhost", init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, { redirect: "manual", ...init, headers: { host: `${name}:${port}`, ...init.headers } });

/** Requests the path unchanged, because fetch resolves dots first. */
async function askPlainly(path: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost:${port}\r\nconnection: close\r\n\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}

describe("a file of service/public/", () => {
  for (const [path, text, type] of [
    ["/public/", "<p>start</p>", "text/html"],
    ["/public/index.html", "<p>start</p>", "text/html"],
    ["/public/shop/", "<p>shop</p>", "text/html"],
    ["/public/shop/a%20b%2520c.css", "p{}", "text/css"],
    ["/public/app.js?v=1", "1", "text/javascript"],
    ["/public/same.js", "1", "text/javascript"],
  ] as const) {
    test(`is served at ${path}`, async () => {
      const answer = await ask(path);
      expect([answer.status, await answer.text()]).toEqual([200, text]);
      expect(answer.headers.get("content-type")).toStartWith(type);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    });
  }

  test("is served in its current state: changed, new, and deleted", async () => {
    const file = join(pages, "index.html");
    await writeFile(file, "<p>a longer text than before</p>");
    expect(await (await ask("/public/")).text()).toBe("<p>a longer text than before</p>");
    await mkdir(join(pages, "new"));
    await writeFile(join(pages, "new", "index.html"), "<p>new</p>");
    expect(await (await ask("/public/new/")).text()).toBe("<p>new</p>");
    await writeFile(join(pages, "new", "index.html"), "<p>new again</p>");
    expect(await (await ask("/public/new/")).text()).toBe("<p>new again</p>");
    await rm(join(pages, "new"), { recursive: true });
    expect((await ask("/public/new/")).status).toBe(404);
  });

  test("answers HEAD without its content, and rejects other methods", async () => {
    const head = await ask("/public/app.js", "localhost", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const post = await ask("/public/app.js", "localhost", { method: "POST" });
    expect(post.status).toBe(404);
  });

  test("that is a folder redirects to the slash that its links need", async () => {
    for (const path of ["/public", "/public/shop"]) {
      const answer = await ask(`${path}?a=1`);
      expect([answer.status, answer.headers.get("location")]).toEqual([307, `${path}/?a=1`]);
    }
  });
});

describe("no other file is served", () => {
  for (const path of [
    "/public/none.html",
    "/public/bare/",
    "/public/app.js/",
    "/public/.env",
    "/public/shop/.hidden/x.txt",
    "/public/out.txt",
    "/public/up/catalog.json",
    "/public/env.txt",
    "/public/%00",
    "/public/%ff",
    "/public/shop/..%2f..%2f..%2foutside.txt",
    "/public/a/b/c/d/e/f/g/h/i/..%2f..%2foutside.txt",
    "/public/a/b/c/d/e/f/g/h/i/%252e%252e/x",
  ]) {
    test(path, async () => {
      const answer = await ask(path);
      expect([400, 404]).toContain(answer.status);
      expect(await answer.text()).not.toContain("secret");
    });
  }

  test("and dots do not leave the folder, whichever layer decodes them", async () => {
    for (const path of ["/public/../catalog.json", "/public/%2e%2e/catalog.json", "/public/..%5ccatalog.json", "/public//index.html"]) {
      const heard = await askPlainly(path);
      expect([path, heard.slice(9, 12), heard.includes('"ambiguous_request"')]).toEqual([path, "400", true]);
    }
  });

  test("while public is a file, until it is a folder", async () => {
    const own = await mkdtemp(join(tmpdir(), "relay-public-"));
    await writeFile(join(own, "public"), "secret");
    await using file = await startRunningService({ config: { mode: "local", baseUrl: null, serviceDir: own }, environments: ["local"] });
    const at = `http://localhost:${file.service.port}/public/index.html`;
    const look = (address: string) => fetch(address.replace("localhost", "127.0.0.1"), { headers: { host: new URL(address).host } });
    for (const address of [at, at.replace("index.html", "")]) expect((await look(address)).status).toBe(404);
    await rm(join(own, "public"));
    await mkdir(join(own, "public"));
    await writeFile(join(own, "public", "index.html"), "<p>now</p>");
    expect(await (await look(at)).text()).toBe("<p>now</p>");
    await rm(own, { recursive: true });
  });

  test("and a server serves no such folder", async () => {
    await using server = await startRunningService({ config: { serviceDir: join(folder, "service") } });
    expect((await fetch(`${server.service.url}/public/app.js`)).status).toBe(404);
  });
});

describe("a page and the dashboard are two sites to a browser", () => {
  const signIn = async (): Promise<string> => {
    const link = (await running.service.makeSigninLink()) ?? "";
    expect(link).toStartWith(`http://127.0.0.1:${port}/`);
    const answer = await ask("/api/session/link", "127.0.0.1", {
      method: "POST",
      headers: { origin: `http://127.0.0.1:${port}` },
      body: JSON.stringify({ token: link.split("#")[1] }),
    });
    expect(answer.status).toBe(200);
    return (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  };

  test("pages are served only under localhost, and the dashboard is not", async () => {
    for (const name of ["127.0.0.1", "[::1]"]) {
      const page = await ask("/public/shop/?a=1", name);
      expect([page.status, page.headers.get("location")]).toEqual([307, `http://localhost:${port}/public/shop/?a=1`]);
    }
    const dashboard = await ask("/relays?x=1", "localhost", { headers: { accept: "text/html" } });
    expect([dashboard.status, dashboard.headers.get("location")]).toEqual([307, `http://127.0.0.1:${port}/relays?x=1`]);
    expect((await ask("/relays", "127.0.0.1", { headers: { accept: "text/html" } })).status).toBe(200);
  });

  test("the dashboard's session is invalid under the pages' host name, also if a browser sends it", async () => {
    const cookie = await signIn();
    expect((await ask("/api/apps", "127.0.0.1", { headers: { cookie } })).status).toBe(200);
    const seen = await ask("/api/apps", "localhost", { headers: { cookie } });
    expect([seen.status, (await seen.json()).code]).toEqual([401, "unauthenticated"]);
    const session = await ask("/api/session", "localhost", { headers: { cookie } });
    expect((await session.json()).owner).toBeNull();
  });

  test("a page cannot write with the session, from its own origin or to the dashboard's", async () => {
    const cookie = await signIn();
    const origin = `http://localhost:${port}`;
    const own = await ask("/api/session", "localhost", { method: "DELETE", headers: { cookie, origin } });
    expect(own.status).toBe(401);
    const other = await ask("/api/session", "127.0.0.1", { method: "DELETE", headers: { cookie, origin } });
    expect([other.status, (await other.json()).code]).toEqual([403, "wrong_origin"]);
  });

  test("no session can start under the pages' host name", async () => {
    const link = (await running.service.makeSigninLink()) ?? "";
    const answer = await ask("/api/session/link", "localhost", {
      method: "POST",
      headers: { origin: `http://localhost:${port}` },
      body: JSON.stringify({ token: link.split("#")[1] }),
    });
    expect([answer.status, (await answer.json()).code, answer.headers.get("set-cookie")]).toEqual([403, "wrong_origin", null]);
  });

  test("the client library's routes work from a page", async () => {
    const answer = await ask("/client/auth/code", "localhost", {
      method: "POST",
      headers: { origin: `http://localhost:${port}`, "x-app-key": "ak_none" },
      body: JSON.stringify({ email: "ada@example.com" }),
    });
    expect((await answer.json()).code).toBe("unauthenticated");
    expect((await ask("/client/g.js")).status).toBe(200);
  });
});

test("a folder that links out of the service folder is not followed, and one that links inside is", async () => {
  const moved = join(folder, "service", "moved");
  await rename(pages, moved);
  try {
    await symlink(folder, pages);
    const outside = await ask("/public/outside.txt");
    expect([outside.status, (await outside.json()).message]).toEqual([
      404,
      expect.stringContaining("is a link to a folder outside it, so Relay does not follow it"),
    ]);
    await rm(pages);
    await symlink(moved, pages);
    expect(await (await ask("/public/shop/")).text()).toBe("<p>shop</p>");
  } finally {
    await rm(pages);
    await rename(moved, pages);
  }
});
