/** The wire shapes of a plan: of each item, of the plan before it is applied, and of its result. */
import { type Static, Type } from "typebox";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { MAX_ONCE_KEY_CHARS } from "../../base/limit.ts";
import { oneOf, orNull, textOrNull, time, warningView } from "../../base/schema.ts";
import { SYNC_ITEM_KINDS } from "./deployed-state.ts";

const STATES = [
  "created",
  "changed",
  "unchanged",
  "edited",
  "behind",
  "conflict",
  "only_there",
  "deleted",
  "not_carried",
] as const;

const refusalView = Type.Object({
  code: Type.Unsafe<RefusalCode>(Type.String()),
  message: Type.String(),
  /** Only for a refusal that ends by itself. */
  resetAt: Type.Optional(time),
});

/** The effect that a captured request can have through a relay with unsigned events, now and after the change. */
const capturedCallView = Type.Object({
  before: textOrNull,
  after: textOrNull,
  widens: Type.Boolean({ description: "whether it would be more than it is" }),
});

/** The last change of an item in the environment, which the folder has not seen. */
const newerView = Type.Object(
  {
    at: time,
    by: Type.String(),
    byName: textOrNull,
    how: oneOf(["synced", "edited", "deleted"]),
    commit: textOrNull,
  },
  {
    description:
      "for edited, behind and conflict: who made or deleted the environment's version, and the commit of a sync",
  },
);

/** A new relay whose definition is that of a synced relay without a file. */
const renamedView = Type.Object(
  {
    from: Type.String(),
    receiverUrl: textOrNull,
    secret: orNull(oneOf(["new", "missing"])),
    signingSecret: Type.Boolean(),
  },
  {
    description:
      "for a created relay: the earlier relay of the same definition, what the new one has instead, and which secrets it lacks",
  },
);

export const entryView = Type.Object({
  kind: oneOf(SYNC_ITEM_KINDS),
  name: Type.String(),
  state: Type.Unsafe<State>({
    ...oneOf(STATES),
    description:
      "edited: the environment was edited since the last sync, and differs from the file; behind: the environment has a newer version than the folder saw, and the file has not changed; conflict: both changed. These three are replaced only where that is asked for; only_there: a relay without a file, which is kept; not_carried: a relay of the other environment that breaks a rule, or what that relay alone sells; the refusal says which",
  }),
  diff: Type.Array(
    Type.Object({
      field: Type.String(),
      before: Type.Optional(Type.Unknown()),
      after: Type.Optional(Type.Unknown()),
    }),
  ),
  warnings: Type.Array(warningView),
  refusal: orNull(refusalView),
  capturedCall: orNull(capturedCallView),
  /** Absent for an item that the plan replaces or creates without a question. */
  newer: Type.Optional(newerView),
  renamed: Type.Optional(renamedView),
  waitingEvents: Type.Optional(
    Type.Integer({
      description: "for a relay that is deleted: its events that wait and fail with it, at most 10,000",
    }),
  ),
  cases: Type.Optional(
    Type.String({ description: "for a relay with cases: how many end as before, and which ones do not" }),
  ),
  content: Type.Optional(
    Type.Unknown({
      description: "a plan of the catalog with the fields that its file leaves out, after the change",
    }),
  ),
});
export type EntryView = Static<typeof entryView>;
type State = (typeof STATES)[number];

const planned = {
  plan: Type.String({ description: "the plan's name: of both sides as they were read" }),
  changes: Type.Integer({ description: "things that are created, changed or deleted" }),
  entries: Type.Array(entryView),
  warnings: Type.Array(warningView),
};

export const planView = Type.Object({
  ...planned,
  refusal: orNull(refusalView),
});

export const appliedView = Type.Object({
  ...planned,
  secrets: Type.Array(
    Type.Object({
      relay: Type.String(),
      receiverSecret: Type.Optional(Type.String()),
      signingSecret: Type.Optional(Type.String()),
    }),
  ),
  /** The relays that have an open step on their checklist, of the first 5 that this plan created or changed in production; absent for other environments. */
  notLive: Type.Optional(Type.Array(Type.String())),
  repeated: Type.Optional(
    Type.Boolean({
      description: "true: an earlier request with this key applied the plan, and this is its response",
    }),
  ),
});

/** The key of an apply, which its caller chooses. */
export const applyKey = Type.Optional(
  Type.String({
    pattern: "^[!-~]+$",
    minLength: 1,
    maxLength: MAX_ONCE_KEY_CHARS,
    description:
      "identifies this request: for ten minutes, the same request with the same key gets the first response again, with its secrets, and applies nothing",
  }),
);

export type PlanPreview = Static<typeof planView>;

/** The changes that were applied, or would be. `warnings` are of other relays, which the catalog's changes broke. */
export type PlanResult = Static<typeof appliedView>;
