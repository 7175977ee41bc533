/**
 * Says who makes the secret of a known sender's receiver, and where the sender shows it. A save needs this for each receiver, so this file holds only
 * that part of senders/*.json. registry.ts holds all of it and is loaded later.
 */
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { SenderIndex } from "./match-sender.ts";
import { readSecretSources } from "./read-secret-sources.ts" with { type: "macro" };
import type { SecretSource } from "./read-secret-sources.ts";

const INDEX = new SenderIndex<SecretSource>(readSecretSources());

/**
 * Finds the title and the secret's source of the sender whose recipe a receiver uses. null: the sender is unknown, or others with the same recipe
 * treat their secrets otherwise and the receiver does not tell them apart.
 */
export function findSecretSource(trigger: ReceiverTrigger): Pick<SecretSource, "title" | "secret"> | null {
  const match = INDEX.find(trigger);
  if (match === null) return null;
  const { sender, isCertain, ofRecipe } = match;
  const agree = ofRecipe.every(({ secret }) => secret.from === sender.secret.from);
  return isCertain || agree ? sender : null;
}
