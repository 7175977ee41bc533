/** Reads senders/*.json for sender-secret.ts. A macro: Bun runs it when it compiles that file, so the executable needs no folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MatchedSender } from "./match-sender.ts";
import type { Sender } from "./sender.ts";

/** The part of a sender that says who makes its secret and where the secret is. */
export type SecretSource = MatchedSender & Pick<Sender, "title" | "secret">;

export function readSecretSources(): SecretSource[] {
  const folder = join(import.meta.dir, "../../../senders");
  return readdirSync(folder)
    .sort()
    .map((file) => {
      const sender = JSON.parse(readFileSync(join(folder, file), "utf8")) as Sender;
      const { title, secret, verify, map } = sender;
      const eventTypes = sender.eventTypes.map(({ type }) => ({ type, meaning: "" }));
      return { title, secret, verify, map, eventTypes };
    });
}
