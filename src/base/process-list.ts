/**
 * What others on this machine see of this process: its arguments stand in the list of processes. The password of a database's URL is taken out of
 * them where the system lets it (Linux); elsewhere RELAY_DATABASE keeps it out of there.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { findPasswords } from "./database-url.ts";

/** To be called when the arguments were read. */
export function hidePasswords(): void {
  let memory: number | null = null;
  try {
    const places = findPasswords(readFileSync("/proc/self/cmdline", "latin1"));
    if (places.length === 0) return;
    memory = openSync("/proc/self/mem", "r+");
    const begin = findArguments();
    for (const { at, length } of places) writeSync(memory, Buffer.alloc(length, "x"), 0, length, begin + at);
  } catch {
    // Another system, or a hardened one.
  } finally {
    if (memory !== null) closeSync(memory);
  }
}

/** Where they begin in memory: the 48th field, counted behind the program's name, which may hold anything. */
function findArguments(): number {
  const stat = readFileSync("/proc/self/stat", "latin1");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[45]);
}
