/**
 * Lists the event types to choose at the sender of a receiver: those that the receiver and its followers wait for, and those of the selling kit that
 * they come from.
 */
import { type Static, Type } from "typebox";
import { textOrNull } from "../../base/schema.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findSavedKit } from "../../rules/relay/saved-kit.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import type { ReceiverTrigger } from "../../rules/trigger/receiver.ts";

/** An event type of a sender; `meaning` is null for a type that Relay does not know. */
export const eventTypeView = Type.Object({ type: Type.String(), meaning: textOrNull });
export type EventType = Static<typeof eventTypeView>;

interface NamedRelay {
  name: string;
  definition: Definition;
}

/** Lists the types of a receiver. Without any, it lists all types of the sender that a relay can use. */
export async function listEventTypes(
  { name, trigger }: { name: string; trigger: ReceiverTrigger },
  followers: readonly NamedRelay[],
  sender: Sender | null,
): Promise<EventType[]> {
  const known = new Map(sender?.eventTypes.map(({ type, meaning }) => [type, meaning]));
  const triggers = [trigger, ...followers.map(({ definition }) => definition.trigger)];
  const wanted = triggers.flatMap((one) =>
    one.kind === "receiver" ? listWantedTypes(one, sender, known) : [],
  );
  const types = [...new Set([...(await listKitTypes(name, followers)), ...wanted])];
  return (types.length > 0 ? types : [...known.keys()]).map((type) => ({
    type,
    meaning: known.get(type) ?? null,
  }));
}

/** Lists the types of the kit of the source, if one of its relays follows it. Some relays of a kit name no type, because a header has it. */
async function listKitTypes(source: string, followers: readonly NamedRelay[]): Promise<readonly string[]> {
  if (followers.length === 0) return [];
  const { findKit } = await import("../../rules/senders/kit-registry.ts");
  const kit = findKit(source);
  return kit !== null && findSavedKit(kit, followers).relays.length > 0 ? kit.eventTypes : [];
}

function listWantedTypes(
  { map, when = {} }: ReceiverTrigger,
  sender: Sender | null,
  known: ReadonlyMap<string, string>,
): string[] {
  const path = sender?.map.event_type;
  return Object.entries(when)
    .filter(([field, values]) =>
      path === undefined
        ? field === "event_type"
        : map[field] === path || [values].flat().some((value) => known.has(value)),
    )
    .flatMap(([, values]) => values);
}
