/** TXT records from the system's DNS. A name that does not exist has none; anything else that goes wrong is thrown. */
import { Resolver } from "node:dns/promises";
import type { TxtResolver } from "./sender-domain.ts";

const TIMEOUT_MS = 3_000;
const TRIES = 2;
const NO_RECORD: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"]);

export const resolveTxt: TxtResolver = async (name) => {
  try {
    const records = await new Resolver({ timeout: TIMEOUT_MS, tries: TRIES }).resolveTxt(name);
    return records.map((strings) => strings.join(""));
  } catch (error) {
    if (NO_RECORD.has((error as { code?: string }).code ?? "")) return [];
    throw error;
  }
};
