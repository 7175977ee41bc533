/**
 * Lists the refusal codes of one line of an import, in addition to those of a request. They are part of the registry in refusal-code.ts, but are
 * never the status of a response.
 */
import type { RefusalEntry } from "./command-refusal.ts";

export const LINE_REFUSALS = {
  event_id_missing: {
    status: 400,
    when: "An event that is imported says nowhere which event it is, so it could not be told from one that was received.",
    todo: "Name event_id in the relay's map, or give the delivery as it was sent, with its headers.",
  },
  event_too_old: {
    status: 400,
    when: "An event that is imported was signed 30 days ago or more, so whether it was received then is not known any more.",
    todo: "Look whether it was done, and do it by hand if not.",
  },
} as const satisfies Record<string, RefusalEntry>;
