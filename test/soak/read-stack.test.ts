/** Tests that `npm run stack` translates the stack of the executable of these sources. It builds the source maps, which takes seconds. */
import { expect, test } from "bun:test";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { placeExecutable } from "../kit/executable.ts";

async function translate(text: string): Promise<{ said: string; told: string }> {
  const child = Bun.spawn([process.execPath, "scripts/read-stack.ts"], {
    cwd: PROJECT_ROOT,
    stdin: new Blob([text]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, told] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { said, told };
}

test("a stack of the executable gets the files and lines of the sources", async () => {
  using executable = placeExecutable();
  const cwd = executable.makeFolder();
  await executable.run(["apps", "create", "Shop"], { cwd });
  const { told: stack } = await executable.run(["events", "show", "nope"], { cwd, env: { RELAY_DEBUG: "1" } });
  expect(stack).toContain("bunfs");
  const { said, told } = await translate(stack);
  expect(said).not.toContain("bunfs");
  expect(said).toContain("src/engine/event/event.ts:");
  expect(told).toBe("");
});

test("a place of another version stays unchanged, and is counted", async () => {
  const place = "at ji (/$bunfs/root/main-00000000.js:10:270)\n";
  const { said, told } = await translate(place);
  expect(said).toBe(place);
  expect(told).toContain("1 of 1 places are unknown here");
});
