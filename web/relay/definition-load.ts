/** The triggers of listed relays in words. The list tells only their kinds, so each definition is read once for each of its versions. */
import { useEffect, useState } from "preact/hooks";
import type { Relay, RelayItem } from "../ground/answer.ts";
import { call } from "../ground/api.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { sayTrigger, sayTriggerKind } from "./relay-words.ts";

const known = new Map<string, string>();

/** Answers how a relay's trigger is said; by its kind alone until its definition is read. */
export function useTriggerWords(place: Place, relays: readonly RelayItem[]): (relay: RelayItem) => string {
  const [, draw] = useState(0);
  const missing = relays.filter((relay) => !known.has(keyOf(relay)));
  const wanted = missing.map(keyOf).join();
  useEffect(() => {
    let isGone = false;
    for (const relay of missing) {
      call<{ relay: Relay }>("GET", apiPath(place, "relays", relay.name))
        .then(({ relay: found }) => {
          known.set(keyOf(found), sayTrigger(found.definition.trigger));
          if (!isGone) draw((count) => count + 1);
        })
        .catch(() => undefined);
    }
    return () => {
      isGone = true;
    };
  }, [wanted]);
  return (relay) => known.get(keyOf(relay)) ?? sayTriggerKind(relay.trigger);
}

function keyOf({ id, version }: { id: string; version: number }): string {
  return `${id} ${version}`;
}
