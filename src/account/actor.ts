/** Who asks for a change, and the words that stand for them in audit rows. It never decides what an actor may do. */
import type { Origin } from "../store/port.ts";

export type Actor =
  | { kind: "key"; id: string }
  | { kind: "owner"; id: string; email: string }
  | { kind: "command_line" };

export const COMMAND_LINE: Actor = { kind: "command_line" };

/** The actor as stored and shown: `key:<id>`, `owner:<email>` or `command line`. */
export function actorWords(actor: Actor): string {
  switch (actor.kind) {
    case "key":
      return `key:${actor.id}`;
    case "owner":
      return `owner:${actor.email}`;
    case "command_line":
      return "command line";
  }
}

/** The store's origin for what the actor writes: a key is the app, everyone else sits at the dashboard or its machine. */
export function actorOrigin(actor: Actor): Origin {
  return actor.kind === "key" ? "app" : "dashboard";
}
