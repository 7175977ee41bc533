/** Checks that only base/system.ts knows which operating system it runs on. */
import { expect, test } from "bun:test";
import { codeOf, readSources } from "./source-tree.ts";

/** Matches a question about the system, the name of one, or a place that only one has. */
const OF_A_SYSTEM =
  /process\.platform|\bplatform\(|["'`](?:linux|darwin|win32|SIGTERM|SIGBREAK|SIGHUP)["'`]|\/proc\/|\/dev\/|CONIN\$|APPDATA|XDG_|xdg-open|rundll32/;

/** The files that name what is the same on all systems, or only a text for a reader, with their reasons. */
const ALLOWED: Readonly<Record<string, string>> = {
  "src/base/system.ts": "describes the systems",
  "src/interfaces/cli/api/profile.ts": "names the variables in a message",
  "src/interfaces/cli/line/completion.ts": "writes scripts for a shell",
  "src/interfaces/cli/server/config.ts": "names the variable that a value comes from",
};

test("only base/system.ts asks which operating system it runs on", () => {
  const found = readSources("src").filter((source) => OF_A_SYSTEM.test(codeOf(source)));
  expect(
    found
      .map(({ path }) => path)
      .filter((path) => !path.startsWith("src/interfaces/docs/"))
      .sort(),
  ).toEqual(Object.keys(ALLOWED).sort());
});
