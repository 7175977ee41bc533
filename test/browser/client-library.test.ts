/** Tests the client library `g` in a real browser. A page of another origin loads it from the service, and the browser's CORS allows its requests. */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { type EnvironmentName, requireEnvironment } from "../../src/platform/account/environment.ts";
import { openDashboard } from "../kit/browser.ts";
import { APP, type RunningService } from "../kit/running-service.ts";

async function mintAppKey(running: RunningService, name: EnvironmentName, origins: string[]): Promise<string> {
  const made = await running.service.store.write("app", async (tx) => {
    const environment = await requireEnvironment(tx, APP, name);
    return mintApiKey(tx, { environment, kind: "app", name: "page", origins, nowMs: 0 });
  });
  return made.token;
}

/** Serves a page that exposes the library to the test's scripts. */
function servePage(serviceUrl: string) {
  const script = `import * as library from "${serviceUrl}/client/g.js"; globalThis.library = library;`;
  const html = `<!doctype html><title>shop</title><p>shop</p><script type="module">${script}</script>`;
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(html, { headers: { "content-type": "text/html" } }),
  });
}

test("a page signs in, writes a record, gets a 409, and stays signed in after a reload", async () => {
  await using dashboard = await openDashboard();
  const { running, page } = dashboard;
  const { service } = running;
  const key = await mintAppKey(running, "local", []);
  const fields = { text: { type: "text" } };
  await running.api("POST", "/collections", { name: "notes", kind: "private", fields }, "local");
  await running.api("PUT", "/products/book", {}, "local");
  using shop = servePage(service.url);
  const open = async () => {
    await page.goto(`http://localhost:${shop.port}/`);
    await page.waitForFunction("globalThis.library !== undefined");
    await page.evaluate(`globalThis.g = library.createClient({ url: ${JSON.stringify(service.url)}, key: ${JSON.stringify(key)} })`);
  };
  await open();
  expect(await page.evaluate("g.me()")).toBeNull();
  await page.evaluate('g.auth.requestCode("bo@example.com")');
  const [mail] = await running.rows<{ text: string }>("SELECT text FROM email ORDER BY seq DESC LIMIT 1");
  const code = mail?.text.slice(0, 6);
  expect(await page.evaluate(`g.auth.signIn("bo@example.com", "${code}")`)).toMatchObject({
    email: "bo@example.com",
  });
  await open();
  expect(await page.evaluate("g.me()")).toMatchObject({ person: { email: "bo@example.com" } });
  const made = await page.evaluate(`g.records("notes").create({ text: "from a page" })`);
  expect(made).toMatchObject({ data: { text: "from a page" } });
  expect(await page.evaluate(`g.records("notes").delete(${JSON.stringify((made as { id: string }).id)})`)).toBeUndefined();
  const told = await page.evaluate("g.payments.buy('book').catch(({ name, code, status }) => ({ name, code, status }))");
  expect(told).toEqual({ name: "RelayError", code: "product_not_sellable", status: 409 });
  await page.evaluate("g.auth.signOut()");
  expect(await page.evaluate("localStorage.length")).toBe(0);
});

test("a page of an origin that a live key does not name can read nothing, not even the error", async () => {
  await using dashboard = await openDashboard({ environments: ["local", "production"] });
  const { running, page } = dashboard;
  const key = await mintAppKey(running, "production", ["https://shop.example.com"]);
  using shop = servePage(running.service.url);
  await page.goto(`http://localhost:${shop.port}/`);
  await page.waitForFunction("globalThis.library !== undefined");
  const told = await page.evaluate(
    `library.createClient({ url: ${JSON.stringify(running.service.url)}, key: ${JSON.stringify(key)} })
      .auth.requestCode("bo@example.com").catch(({ code, status }) => ({ code, status }))`,
  );
  expect(told).toEqual({ code: "unreachable", status: 0 });
  expect(await running.rows("SELECT 1 FROM email")).toEqual([]);
});

test("a page in service/public/ uses the library at its own address, and cannot act with the dashboard's session", async () => {
  const serviceDir = mkdtempSync(join(tmpdir(), "relay-public-"));
  mkdirSync(join(serviceDir, "public"));
  const script = `import * as library from "/client/g.js"; globalThis.library = library;`;
  writeFileSync(join(serviceDir, "public", "index.html"), `<!doctype html><p>shop</p><script type="module">${script}</script>`);
  await using dashboard = await openDashboard({ config: { serviceDir } });
  const { running, page } = dashboard;
  const { service } = running;
  const key = await mintAppKey(running, "local", []);
  await page.goto(`${service.url}/public/`);
  expect(page.url()).toBe(`http://localhost:${service.port}/public/`);
  await page.waitForFunction("globalThis.library !== undefined");
  expect(await page.evaluate(`library.createClient({ url: location.origin, key: ${JSON.stringify(key)} }).me()`)).toBeNull();
  const api = `${service.url}/api/session`;
  const told = `.then(async (answer) => [answer.status, (await answer.text()).includes("@")], () => "kept from the page")`;
  expect(await page.evaluate(`fetch("/api/apps", { credentials: "include" })${told}`)).toEqual([401, false]);
  expect(await page.evaluate(`fetch("${api}", { credentials: "include" })${told}`)).toBe("kept from the page");
  await page.evaluate(`fetch("${api}", { method: "DELETE", credentials: "include", mode: "no-cors" }).catch(() => null)`);
  await page.evaluate(`fetch("${api}/link", { method: "POST", credentials: "include", mode: "no-cors", body: "{}" }).catch(() => null)`);
  // A new window shows an empty page that every origin can read, until the dashboard has loaded.
  const look = `if (dashboard.location.href !== "about:blank") return dashboard.document.title; await new Promise((done) => setTimeout(done, 50));`;
  const opened = `const dashboard = open(${JSON.stringify(service.url)}); try { for (;;) { ${look} } } catch { return "kept from the page"; }`;
  expect(await page.evaluate(`(async () => { ${opened} })()`)).toBe("kept from the page");
  await page.goto(`http://localhost:${service.port}/`);
  expect(page.url()).toStartWith(`${service.url}/`);
  expect(await page.evaluate(`fetch("/api/apps").then(({ status }) => status)`)).toBe(200);
  rmSync(serviceDir, { recursive: true });
});
