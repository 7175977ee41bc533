/** Reads senders/*.json for sender-secret.ts. A macro: Bun runs it when it compiles that file, so the executable needs no folder. */
import { readJsonFolder } from "../../base/read-json-folder.ts";
import type { MatchedSender } from "./match-sender.ts";
import type { Sender } from "./sender.ts";

/** The part of a sender that says who makes its secret and where the secret is. */
export type SecretSource = MatchedSender & Pick<Sender, "title" | "secret">;

export function readSecretSources(): SecretSource[] {
  return readJsonFolder<Sender>("senders").map(({ title, secret, verify, map, eventTypes }) => ({
    title,
    secret,
    verify,
    map,
    eventTypes: eventTypes.map(({ type }) => ({ type, meaning: "" })),
  }));
}
