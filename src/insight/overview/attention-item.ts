/** Defines one thing that needs an owner's attention: its view, and the function that makes it from a code. */
import { type Static, Type } from "typebox";
import { findMeaning, type Meaning } from "../../base/code/code.ts";
import { orNull, quotingText, textOrNull, time } from "../../base/schema.ts";
import { recentChangeView } from "../../rules/relay/recent-change.ts";
import { relayOf } from "../../rules/relay/relay.ts";
import { deadView } from "./dead-events.ts";
import { causeView } from "./failure-cause.ts";
import { latestFailure } from "./latest-failure.ts";

export const attentionItemView = Type.Object({
  code: Type.String(),
  /** The thing that it concerns, such as `relay:orders`, `environment` or `server`. */
  target: Type.String(),
  /** The relay's name; null where it concerns no relay. */
  relay: textOrNull,
  since: time,
  /** The problem, in a sentence. */
  message: quotingText,
  /** The next step for the owner, in a sentence. */
  todo: Type.String(),
  /** The next step that Relay takes by itself, such as when the item resolves; null where the code says nothing. */
  next: textOrNull,
  /** The documentation page of the code, for callers that ask for it. */
  docs: Type.Optional(Type.String()),
  /** The id of the alert that an owner can resolve; null where there is none. */
  alert: textOrNull,
  /** The change shortly before it began, which an owner can undo; null where there is none. */
  change: orNull(recentChangeView),
  /** The doubt after a change that is newer than the last failure; null for dead events, which have a `cause`, and where nothing was changed. */
  doubt: orNull(causeView),
  /** Details of dead events; null for other items. */
  dead: orNull(deadView),
  /** The newest failed event; null where the item is about no event, or was not looked into. */
  newest: latestFailure,
});
export type AttentionItem = Static<typeof attentionItemView>;

type ItemDraft = Pick<AttentionItem, "code" | "target" | "since" | "message"> & Partial<AttentionItem>;

/** Completes an item. The advice comes from the code, unless the draft has its own. */
export function makeItem(draft: ItemDraft): AttentionItem {
  const relay = relayOf(draft.target);
  const { todo, next } = explain(draft.code);
  return { relay, todo, next, alert: null, change: null, doubt: null, dead: null, newest: null, ...draft };
}

/** Returns what a code means and what to do. */
export function explain(code: string): Pick<Meaning, "what" | "todo" | "next"> {
  return findMeaning(code, ["problem", "alert"]) ?? { what: `${code}.`, todo: "Fix its cause.", next: null };
}
