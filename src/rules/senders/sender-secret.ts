/**
 * Says who makes the secret of a known sender's receiver, and where the sender shows it. A save needs this for each receiver, so this file holds only
 * that part of senders/*.json. registry.ts holds all of it and is loaded later.
 */
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { matchSender } from "./match-sender.ts";
import { readSecretSources } from "./read-secret-sources.ts" with { type: "macro" };
import type { SecretSource } from "./read-secret-sources.ts";

const SOURCES: readonly SecretSource[] = readSecretSources();

/** Finds the title and the secret's source of the sender whose recipe a receiver uses; null for an unknown sender. */
export function findSecretSource(trigger: ReceiverTrigger): Pick<SecretSource, "title" | "secret"> | null {
  return matchSender(SOURCES, trigger);
}
