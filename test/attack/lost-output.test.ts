/** Standard output and error cannot be written. The server continues, drops, counts and reports the lines, and uses bounded memory. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LineOutput } from "../../src/base/output.ts";
import { findFreePort } from "../kit/cli-process.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { poll } from "../kit/patience.ts";

type Done = (error?: Error | null) => void;

/** A stream whose writes end when the test says so. */
class HeldStream {
  readonly written: string[] = [];
  readonly waiting: Done[] = [];
  throws = false;
  listens = false;

  write(text: string, done: Done): void {
    if (this.throws) throw new Error("EPIPE");
    this.written.push(text);
    this.waiting.push(done);
  }

  on(): void {
    this.listens = true;
  }

  end(error?: Error): void {
    for (const done of this.waiting.splice(0)) done(error ?? null);
  }
}

describe("a line output", () => {
  test("listens to the stream's errors, which would end the process", () => {
    const stream = new HeldStream();
    new LineOutput(() => stream).write("one");
    expect(stream).toMatchObject({ listens: true, written: ["one\n"] });
  });

  test("counts lines that failed, by an exception or an error, and reports them once when writing works again", () => {
    const stream = new HeldStream();
    const output = new LineOutput(() => stream);
    const told: number[] = [];
    output.onRecover((lines) => told.push(lines));
    output.write("lost");
    stream.end(new Error("ENOSPC"));
    stream.throws = true;
    output.write("lost");
    stream.throws = false;
    expect({ dropped: output.dropped, told }).toEqual({ dropped: 2, told: [] });
    output.write("written");
    output.write("written");
    stream.end();
    expect({ dropped: output.dropped, told }).toEqual({ dropped: 2, told: [2] });
  });

  test("uses bounded memory for a reader that does not read: it drops lines past 1 MiB until the reader continues", () => {
    const stream = new HeldStream();
    const output = new LineOutput(() => stream);
    const line = "x".repeat(64 * 1024 - 1);
    for (let count = 0; count < 20; count++) output.write(line);
    expect({ written: stream.written.length, dropped: output.dropped }).toEqual({ written: 16, dropped: 4 });
    stream.end();
    output.write(line);
    expect(stream.written).toHaveLength(17);
  });
});

describe("relay serve", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "relay-output-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const rows: readonly [name: string, redirect: string, lost: RegExp][] = [
    ["with a full disk behind both streams", ">/dev/full 2>/dev/full", /stream="stdout"} [1-9]/],
    ["whose reader left after the first line", "2>/dev/null | head -1 >/dev/null; wait", /stream="stdout"} \d/],
    ["whose log's reader left", "2>&1 >/dev/null | head -1 >/dev/null; wait", /stream="stderr"} \d/],
    ["with closed streams", ">&- 2>&-", /stream="stderr"} 0/],
  ];

  // Only Linux has /dev/full.
  const here = process.platform === "linux" ? rows : [];
  test.each(here)("%s continues, and counts what it could not write", async (_name, redirect, lost) => {
    const port = await findFreePort();
    const line = `echo $$; exec 3>&1; { sh -c 'echo $$ >&3; exec "$0" "$@" 3>&-' '${requireExecutable("relay")}' serve --port ${port} --data-dir '${folder}' ${redirect}; }`;
    const child = Bun.spawn(["sh", "-c", line], { env: process.env, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const reader = child.stdout.getReader();
    let said = "";
    while (said.trim().split("\n").length < 2) {
      const { value } = await reader.read();
      said += new TextDecoder().decode(value);
    }
    const server = Number(said.trim().split("\n")[1]);
    try {
      const origin = `http://127.0.0.1:${port}`;
      await waitUntil(async () => (await fetch(`${origin}/healthz`)).ok);
      // Each request makes the server print a line, and every line is lost.
      for (let call = 0; call < 3; call++) await fetch(`${origin}/hooks/none/none`, { method: "POST" });
      const metrics = await (await fetch(`${origin}/metrics`)).text();
      expect(metrics).toMatch(lost);
      process.kill(server, "SIGTERM");
      await waitUntil(async () => !isAlive(server));
    } finally {
      if (isAlive(server)) process.kill(server, "SIGKILL");
      await child.exited;
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  expect(await poll(() => holds().catch(() => false), Boolean, 50)).toBe(true);
}
