/** Tests the command line as processes: local development from an empty folder, commands next to a server, signals and exit codes. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startCli } from "../kit/cli-process.ts";

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "relay-process-"));
});

afterEach(() => rmSync(cwd, { recursive: true }));

async function codeOf(...line: string[]): Promise<number> {
  await using run = startCli(line, { cwd });
  return await run.exited;
}

const portOf = (line: string): string => /127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? "";

describe("relay dev", () => {
  test("from an empty folder, the example receives a signed event and runs it, and a signal exits with 0", async () => {
    await using dev = startCli(["dev", "--example", "--port", "0"], { cwd });
    expect(await dev.line("Receiver")).toMatch(/http:\/\/127\.0\.0\.1:\d+\/hooks\/local\/checkout-completed$/);
    expect(await dev.line("Dashboard")).toMatch(/#[A-Za-z0-9]{32}/);
    expect(await dev.line("Try it")).toContain("relay send checkout-completed");
    await using send = startCli(["send", "checkout-completed"], { cwd });
    expect(await send.line("is done")).toContain("write_record done");
    expect(await send.exited).toBe(0);
    expect(await dev.line("RELAY ·")).toBe("RELAY · checkout-completed · receiver · 1 action · ok");
    await using wrong = startCli(["send", "checkout-completed"], {
      cwd,
      env: { RELAY_SECRET: "not the secret" },
    });
    expect(await wrong.line("The secret is not the secret of the relay")).toBeString();
    expect(await wrong.line("bad_signature  http")).toContain("/docs/errors/bad_signature");
    expect(await wrong.exited).toBe(1);
    const secret = { RELAY_SECRET: "not the secret" };
    await using inJson = startCli(["send", "checkout-completed", "--json"], { cwd, env: secret });
    expect(await inJson.line('"code": "bad_signature"')).toBeString();
    expect(await inJson.line('"docs": "http')).toContain("/docs/errors/bad_signature");
    expect(await inJson.exited).toBe(1);
    dev.kill("SIGINT");
    expect(await dev.exited).toBe(0);
    expect(readdirSync(join(cwd, ".relay"))).not.toContain("running.json");
  });

  test("a saved file runs the cases of its relay, and the terminal says which has a different result", async () => {
    const file = join(cwd, "service/relays/checkout-completed.json");
    await using dev = startCli(["dev", "--example", "--port", "0"], { cwd });
    await dev.line("Press Ctrl+C");
    const definition = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(join(cwd, "open.json"), JSON.stringify({ type: "checkout.session.expired" }));
    expect(await codeOf("relays", "cases", "checkout-completed", "--keep", "open", "--data", "open.json")).toBe(0);
    const save = (when: object) => writeFileSync(file, JSON.stringify({ ...definition, trigger: { ...definition.trigger, when } }, null, 2));
    save({ event_type: ["checkout.session.completed", "other"] });
    await dev.line("relay checkout-completed: changed from");
    save({ event_type: ["checkout.session.completed", "checkout.session.expired"] });
    expect(await dev.line("1 case: ")).toMatch(/^relay checkout-completed: warning: 1 case: 0 as before, `open` /);
    // The first edit changed no result.
    expect(dev.lines().filter((line) => line.includes("warning"))).toHaveLength(1);
  });

  test("--open gives the browser a page in the user's folder, so that no argument contains the one-time link", async () => {
    // Replaces the program that opens a browser, and stores its arguments.
    const programs = join(cwd, "programs");
    const note = join(cwd, "opened");
    mkdirSync(programs);
    for (const name of ["xdg-open", "open"]) {
      writeFileSync(join(programs, name), `#!/bin/sh\necho "$*" > '${note}'\n`, { mode: 0o755 });
    }
    const env = { PATH: `${programs}:${process.env.PATH}`, DISPLAY: ":none" };
    await using dev = startCli(["dev", "--open", "--port", "0"], { cwd, env });
    const link = /http\S+/.exec(await dev.line("Dashboard"))?.[0] ?? "";
    await dev.line("Press Ctrl+C");
    while (!existsSync(note) || !readFileSync(note, "utf8").endsWith("\n")) await Bun.sleep(20);
    const given = readFileSync(note, "utf8").trim();
    expect(given).toStartWith("file:///");
    expect(given).not.toContain(link.split("#")[1] ?? link);
    const page = fileURLToPath(given);
    expect(statSync(page).mode & 0o777).toBe(0o600);
    expect(readFileSync(page, "utf8")).toContain(`location.replace("${link}")`);
  });

  test("a second process on the same data directory is rejected with the first one's name", async () => {
    await using first = startCli(["dev", "--port", "0"], { cwd });
    await first.line("Dashboard");
    await using second = startCli(["dev", "--port", "0"], { cwd });
    expect(await second.line("is in use by")).toContain("relay dev, process");
    expect(await second.exited).toBe(1);
  });

  test("a rejected start exits under the package scripts' launcher too", async () => {
    await using dev = startCli(["dev", "--example", "--port", "0"], { cwd });
    await dev.line("Dashboard");
    await using second = startCli(["dev", "--port", "0"], { cwd, env: { RELAY_PARENT_PID: String(process.pid) } });
    expect(await second.line("is in use by relay dev")).toContain("stop it first");
    expect(await second.exited).toBe(1);
  });

  test("a replayed event runs again in the running service", async () => {
    await using dev = startCli(["dev", "--example", "--port", "0"], { cwd });
    await dev.line("Dashboard");
    await using send = startCli(["send", "checkout-completed"], { cwd });
    const id = /evt_[0-9a-f]+/.exec(await send.line("is done"))?.[0] ?? "";
    await using tail = startCli(["events", "tail", "--state", "done"], { cwd });
    await tail.line("Waiting for events");
    expect(await codeOf("events", "replay", id)).toBe(0);
    expect(await tail.line(id)).toContain("checkout-completed");
    await using show = startCli(["events", "show", id], { cwd });
    expect(await show.line("attempt 2")).toContain("ok");
    expect(await show.line("skipped")).toContain("write_record");
  });
});

describe("relay serve", () => {
  test("prints the set-up link while there is no owner, and commands create apps and keys next to it", async () => {
    await using server = startCli(["serve", "--port", "0", "--base-url", "https://relay.example.com"], {
      cwd,
    });
    const port = portOf(await server.line("Listening"));
    expect(await server.line("Set-up")).toContain("https://relay.example.com/setup#");
    expect(await codeOf("apps", "create", "Shop", "--id", "shop")).toBe(0);
    await using keys = startCli(["keys", "create"], { cwd });
    const key = await keys.line("relay_dev_");
    const answer = await fetch(`http://127.0.0.1:${port}/api/apps/shop/development/relays`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(answer.status).toBe(200);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  });

  test("rejects a port in use with one sentence", async () => {
    await using first = startCli(["serve", "--port", "0"], { cwd });
    const port = portOf(await first.line("Listening"));
    await using second = startCli(["serve", "--port", port, "--data-dir", "other"], { cwd });
    expect(await second.line("is in use")).toContain(`Port ${port}`);
    expect(await second.exited).toBe(1);
  });
});
