/**
 * Uses the compiled executable in an empty folder as a new user does: version, init, validate, dev, one signed event that ends done, and a
 * graceful stop. It waits for the lines that the executable prints, never for a fixed time.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** The limit for the complete run, so that a hang fails. */
const TIME_LIMIT_MS = 60_000;

const executable = resolve(process.platform === "win32" ? "dist/relay.exe" : "dist/relay");
const folder = mkdtempSync(join(tmpdir(), "relay-smoke-"));
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RELAY_")));

function fail(sentence: string): never {
  console.error(`smoke: ${sentence}`);
  process.exit(1);
}

async function run(...args: string[]): Promise<string> {
  const child = Bun.spawn([executable, ...args], {
    cwd: folder,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, talk, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) fail(`relay ${args.join(" ")} ended with ${code}: ${out}${talk}`);
  return out;
}

/** Reads lines until one contains `text`, and returns it. Fails if the stream ends before. */
async function waitFor(text: string, lines: AsyncIterator<string>): Promise<string> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done === true) fail(`the service ended before it printed ${text}`);
    if (value.includes(text)) return value;
  }
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

const timeLimit = setTimeout(() => fail(`it took longer than ${TIME_LIMIT_MS / 1000} s`), TIME_LIMIT_MS);
const version = (await run("--version")).trim();
await run("init");
await run("validate");
const service = Bun.spawn([executable, "dev", "--port", "0"], {
  cwd: folder,
  env,
  stdin: "ignore",
  stdout: "pipe",
  stderr: "inherit",
});
const lines = readLines(service.stdout);
const receiver = (await waitFor("Receiver", lines)).split(/\s+/)[1] ?? "";
const origin = new URL(receiver).origin;
await waitFor("Dashboard", lines);
for (const path of ["/healthz", "/readyz", "/"]) {
  const { status } = await fetch(`${origin}${path}`);
  if (status !== 200) fail(`${path} answered ${status}`);
}
await run("send", "checkout-completed");
await waitFor("RELAY · checkout-completed · receiver · 1 action · ok", lines);
service.kill("SIGTERM");
const code = await service.exited;
if (code !== 0) fail(`the service ended with ${code} after SIGTERM`);
clearTimeout(timeLimit);
rmSync(folder, { recursive: true });
console.log(`smoke: relay ${version} received, ran and stopped in an empty folder`);
