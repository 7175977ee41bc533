/** Lists the refusal codes of actions on an event, such as replays and expunging. They are part of the registry in refusal-code.ts. */
import type { RefusalEntry } from "./command-refusal.ts";

export const EVENT_REFUSALS = {
  not_replayable: {
    status: 409,
    when: "The event is queued or running, so it cannot be replayed.",
    todo: "Wait until it is done, failed or dead.",
  },
  not_waiting: {
    status: 409,
    when: "The event does not wait for a retry, or its relay is paused or its environment on hold, so it cannot be tried now.",
    todo: "Replay one that has ended; resume the relay or release the hold first; what is due or running needs nothing.",
  },
  replay_running: {
    status: 409,
    when: "A bulk replay of this environment is under way, and there is one at a time.",
    todo: "Wait until it has ended, or stop it: relay replays stop, or the Events page.",
  },
  payload_expunged: {
    status: 409,
    when: "The event's payload was expunged, by hand or because its person was erased.",
    todo: "It cannot run again; do by hand what it should have done, or let the provider send a new event.",
  },
  not_expungeable: {
    status: 409,
    when: "The event is running, so its payload is in use.",
    todo: "Wait until its attempt has ended, then expunge it.",
  },
  unsigned_event: {
    status: 409,
    when: "The event arrived unsigned and its relay now acts without trustUnsignedEvents.",
    todo: "Do by hand what the event should have done. Where the relay's sender still does not sign its events, trigger.trustUnsignedEvents lets it run if you accept that.",
  },
} as const satisfies Record<string, RefusalEntry>;
