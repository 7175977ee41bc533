/**
 * The released program, except that a test moves its clock. Each line on standard input is a move (`advance <ms>`, `leap <ms>`). The program prints
 * `clock <ms since 1970>` once everything due has happened. It is compiled only for tests and is not part of the project's build.
 */

import { MIGRATION_WORD } from "../../src/base/own-executable.ts";
import { readManual } from "../../src/boot/documentation.ts";
import { runMigration } from "../../src/boot/migration.ts";
import { processIo } from "../../src/interfaces/cli/io.ts";
import { runCommandLine } from "../../src/interfaces/cli/run.ts";
import { startService } from "../../src/service.ts";
import { START_MS, VirtualClock } from "./virtual-clock.ts";

const line = process.argv.slice(2);
const clock = new VirtualClock(Number(process.env.STAGED_NOW_MS ?? START_MS));

async function obey(): Promise<void> {
  let rest = "";
  for await (const bytes of Bun.stdin.stream()) {
    const [last = "", ...whole] = `${rest}${new TextDecoder().decode(bytes)}`.split("\n").reverse();
    rest = last;
    for (const order of whole.reverse()) {
      const [word, ms] = order.split(" ");
      if (word === "advance") await clock.advance(Number(ms));
      else await clock.leap(Number(ms));
      process.stdout.write(`clock ${clock.now()}\n`);
    }
  }
}

if (line[0] === "serve") void obey();
const ran =
  line[0] === MIGRATION_WORD
    ? runMigration(line[1] ?? "")
    : runCommandLine(line, { ...processIo({ startService, readManual: () => Promise.resolve(readManual()) }), clock });
void ran.then((code) => process.exit(code));
