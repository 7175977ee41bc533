/** Checks in a compiled executable that an outbound request connects only to the checked address, over TLS too. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const CLAIMS = 6;

test("scripts/pin-check.ts, compiled, prints that each of its claims holds", async () => {
  const folder = mkdtempSync(join(tmpdir(), "relay-pin-"));
  try {
    const executable = join(folder, "pin-check");
    const script = resolve(import.meta.dir, "../../scripts/pin-check.ts");
    const build = Bun.spawnSync([process.execPath, "build", "--compile", script, "--outfile", executable], { cwd: folder });
    expect({ code: build.exitCode, told: build.exitCode === 0 ? "" : build.stderr.toString() }).toEqual({
      code: 0,
      told: "",
    });
    const child = Bun.spawn([executable], { cwd: folder, env: {}, stdin: "ignore", stdout: "pipe" });
    const [said, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    const claims = said
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(claims).toHaveLength(CLAIMS);
    expect(claims).toEqual(claims.map(({ claim }) => ({ claim, holds: true })));
    expect(code).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
