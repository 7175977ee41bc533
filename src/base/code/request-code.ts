/** The registry of reasons why an accepted request created no event, or why its event does not run yet. */
import type { CodeEntry } from "./code-entry.ts";

const IGNORED = {
  kinds: ["request"],
  what: "The request verified, but the relay's `when` does not match it, so Relay created no event.",
  todo: "Do nothing if the relay waits for another kind of request. Otherwise correct its `when`.",
} as const satisfies CodeEntry;

export const REQUESTS = {
  when: IGNORED,
  ignored: IGNORED,
  duplicate: {
    kinds: ["request"],
    what: "The request carries an event that arrived before, so Relay did nothing again.",
    why: "Providers send an event again when they got no response in time.",
    todo: "Do nothing. If the bodies differ, check that `event_id` in the relay's map is really the event's own id.",
  },
  handshake: {
    kinds: ["request"],
    what: "A provider asked the receiver URL to confirm itself, and Relay answered as `verify.handshake` says. Such a request creates no event.",
    todo: "Do nothing. If you registered the URL at no provider, check the relay's requests, and remove `handshake` from its definition.",
  },
  waiting: {
    kinds: ["event"],
    what: "Relay stored the event, but does not run it yet.",
    why: "Its relay is paused, or its environment is on hold.",
    todo: "Resume the relay (`relay relays resume`), or release the hold (`relay settings set held off`).",
    next: "The event then runs automatically.",
  },
} as const satisfies Record<string, CodeEntry>;
