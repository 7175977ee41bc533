/** Reads the files of kits/ and finds the kit of a provider. */
import { unpack } from "../../base/packed.ts";
import { packJsonFolder } from "../../base/read-json-folder.ts" with { type: "macro" };
import type { Kit } from "./kit.ts";

/** Every kit, in alphabetical order of the providers. A test checks each file against the shape. */
export const KITS: readonly Kit[] = unpack<Kit[]>(packJsonFolder("kits"));

export function findKit(sender: string): Kit | null {
  return KITS.find((kit) => kit.sender === sender) ?? null;
}
