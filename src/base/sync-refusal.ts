/** Lists the refusal codes of syncs and of changes of production. They are part of the registry in refusal-code.ts. */
import type { RefusalEntry } from "./command-refusal.ts";

export const SYNC_REFUSALS = {
  sync_capped: {
    status: 429,
    when: "A sync would make more changes in a minute than the environment's limit.",
    todo: "Wait until resetAt and apply the plan again; a plan that is larger than the limit needs RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE raised on the server.",
  },
  approval_needed: {
    status: 403,
    when: "Files were to be carried into production without an owner's approval.",
    todo: "Run relay sync --live or relay promote, which ask for one, and approve it in the dashboard.",
  },
  approval_pending: {
    status: 409,
    when: "No owner has approved the change of production yet.",
    todo: "Open the approval's address in the browser, sign in as an owner and approve it there.",
  },
  approval_denied: {
    status: 409,
    when: "An owner refused the change of production.",
    todo: "Talk to the owner; relay sync --live or relay promote ask anew.",
  },
  approval_expired: {
    status: 409,
    when: "The change of production was not approved and carried out within ten minutes.",
    todo: "Ask anew with relay sync --live or relay promote.",
  },
  approval_void: {
    status: 409,
    when: "The files, development or production changed since the approval was asked for, or it was withdrawn.",
    todo: "Ask anew with relay sync --live or relay promote: the plan that is approved is the one that was shown.",
  },
  approval_used: {
    status: 409,
    when: "The approval was given already, or carried out: it works once.",
    todo: "Ask anew for another change.",
  },
  approval_capped: {
    status: 429,
    when: "More approvals were asked for than the environment takes in a minute, or than may wait at once.",
    todo: "Wait until resetAt, or let an owner refuse those that nobody needs.",
  },
} as const satisfies Record<string, RefusalEntry>;
