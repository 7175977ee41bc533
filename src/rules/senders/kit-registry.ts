/** Lists the files of kits/ and finds the kit of a provider. */
import lemonSqueezy from "../../../kits/lemon-squeezy.json" with { type: "json" };
import type { Kit } from "./kit.ts";

/** Every kit, in alphabetical order of the providers. A test checks each file against the shape. */
export const KITS = [lemonSqueezy] as readonly Kit[];

export function findKit(sender: string): Kit | null {
  return KITS.find((kit) => kit.sender === sender) ?? null;
}
