/** Tests the package that verifies notices in a real browser: in a page and in a worker. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { startBrowser } from "../kit/browser.ts";

const SECRET = "whsec_bm8tc2VydmVyLXVzZXMtdGhpcy1zZWNyZXQtbm93";
const BODY = '{"id":"evt_1","note":"Grüße 👋"}';

const FILES: Readonly<Record<string, [type: string, text: string]>> = {
  "/": ["text/html", "<!doctype html><title>page</title><p>page</p>"],
  "/verify.js": ["text/javascript", readFileSync(join(PROJECT_ROOT, "client/verifier/verify.js"), "utf8")],
  "/run.js": [
    "text/javascript",
    'import { verify } from "./verify.js"; export const run = (options) => verify(options).then(({ id }) => id, ({ code }) => code);',
  ],
  "/worker.js": ["text/javascript", 'import { run } from "./run.js"; onmessage = async ({ data }) => postMessage(await run(data));'],
};

function serve() {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const [type, text] = FILES[new URL(request.url).pathname] ?? ["text/plain", ""];
      return new Response(text, { headers: { "content-type": type } });
    },
  });
}

/** Verifies in the page itself and in a worker, as text that the page evaluates. */
const PLACES: [place: string, script: (options: string) => string][] = [
  ["page", (options) => `import("/run.js").then(({ run }) => run(${options}))`],
  [
    "worker",
    (options) =>
      `new Promise((resolve) => { const worker = new Worker("/worker.js", { type: "module" }); worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); }; worker.postMessage(${options}); })`,
  ],
];

test.each(PLACES)("a %s verifies a good notice and refuses a changed one", async (_place, script) => {
  await using stack = new AsyncDisposableStack();
  const page = await (await startBrowser(stack)).newPage();
  using server = serve();
  await page.goto(`http://localhost:${server.port}/`);
  const headers = { "x-service-signature": signNotice(SECRET, BODY, Date.now()) };
  const verify = (body: string) => page.evaluate(script(JSON.stringify({ body, headers, secret: SECRET })));
  expect([await verify(BODY), await verify(`${BODY} `)]).toEqual(["evt_1", "signature_mismatch"]);
});
