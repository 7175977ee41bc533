/**
 * Reads the files of senders/ and finds the sender of a relay's recipe. The command line, the dashboard and the documentation read this list,
 * and a server loads it at the first such request.
 */

import { unpack } from "../../base/packed.ts";
import { packJsonFolder } from "../../base/read-json-folder.ts" with { type: "macro" };
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { SenderIndex } from "./match-sender.ts";
import type { Sender } from "./sender.ts";

/** Every known sender, in alphabetical order of the names. A test checks each file against the shape. */
export const SENDERS: readonly Sender[] = unpack<Sender[]>(packJsonFolder("senders"));

export function findSender(name: string): Sender | null {
  return SENDERS.find((sender) => sender.name === name) ?? null;
}

/** Throws if there is no such sender. */
export function requireSender(name: string): Sender {
  const sender = findSender(name);
  if (sender === null) throw new Error(`There is no known sender ${name}.`);
  return sender;
}

/** Lists the senders whose name, title or summary contains the text; an empty text lists all. */
export function searchSenders(text: string): readonly Sender[] {
  const wanted = text.trim().toLowerCase();
  return SENDERS.filter(({ name, title, summary }) =>
    `${name} ${title} ${summary}`.toLowerCase().includes(wanted),
  );
}

const INDEX = new SenderIndex(SENDERS);

/** Finds the sender whose recipe a receiver uses. null: the sender is unknown, or another one is as likely. */
export function recogniseSender(trigger: ReceiverTrigger): Sender | null {
  const match = INDEX.find(trigger);
  return match?.isCertain === true ? match.sender : null;
}
