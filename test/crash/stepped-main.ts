/**
 * The command line that kills itself at a chosen step. It counts steps from the moment that STEP_FILE exists. A step comes before each statement that
 * writes to the database, after each COMMIT, and before and after each call to a server. In all else it is the released program.
 */
import { Database, type Statement } from "bun:sqlite";
import { existsSync } from "node:fs";

const { STEP_FILE = "", STEP_AT = "0" } = process.env;
const WRITES = /^\s*(INSERT|UPDATE|DELETE|REPLACE|WITH|BEGIN|COMMIT|SAVEPOINT|RELEASE)\b/i;
let steps = 0;

function step(): void {
  if (!existsSync(STEP_FILE)) return;
  steps += 1;
  if (steps === Number(STEP_AT)) process.kill(process.pid, "SIGKILL");
}

function stepped<Work extends (...given: never[]) => unknown>(work: Work, sql: string): Work {
  return function (this: unknown, ...given: Parameters<Work>) {
    step();
    const done = work.apply(this, given);
    if (/^\s*COMMIT/i.test(sql)) step();
    return done;
  } as Work;
}

const { prepare } = Database.prototype;
Database.prototype.prepare = function (this: Database, ...given: Parameters<typeof prepare>): Statement {
  const statement = prepare.apply(this, given);
  const [sql] = given;
  if (WRITES.test(sql)) {
    statement.run = stepped(statement.run, sql);
    statement.get = stepped(statement.get, sql);
    statement.all = stepped(statement.all, sql);
  }
  return statement;
} as typeof prepare;

const { fetch } = globalThis;
globalThis.fetch = Object.assign(async (...given: Parameters<typeof fetch>) => {
  step();
  const answer = await fetch(...given);
  step();
  return answer;
}, fetch);

await import("../../src/main.ts");
