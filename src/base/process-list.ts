/**
 * Hides passwords from other users of this machine, who can see a process's arguments. On Linux it overwrites the password of a database URL in them.
 * On other systems, only RELAY_DATABASE keeps the password out of the arguments.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { findPasswords } from "./database-url.ts";
import { SYSTEM, type System } from "./system.ts";

/** Overwrites the passwords. It must run after the arguments were read. */
export function hidePasswords({ processFolder }: Pick<System, "processFolder"> = SYSTEM): void {
  if (processFolder === null) return;
  let memory: number | null = null;
  try {
    const places = findPasswords(readFileSync(`${processFolder}/cmdline`, "latin1"));
    if (places.length === 0) return;
    memory = openSync(`${processFolder}/mem`, "r+");
    const begin = findArguments(processFolder);
    for (const { at, length } of places) writeSync(memory, Buffer.alloc(length, "x"), 0, length, begin + at);
  } catch {
    // Ignores the error, because other and hardened systems do not allow this.
  } finally {
    if (memory !== null) closeSync(memory);
  }
}

/** Returns where the arguments begin in memory: the 48th field, counted from behind the program's name, which may contain spaces and parentheses. */
function findArguments(processFolder: string): number {
  const stat = readFileSync(`${processFolder}/stat`, "latin1");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[45]);
}
