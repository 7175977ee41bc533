/** Defines the shape of a release in the change feed: in a file of changes/ and in /changes.json. */
import { type Static, Type } from "typebox";

/** The headings of Keep a Changelog, in the order in which each release lists them. */
const KINDS = ["added", "changed", "fixed", "security"] as const;

const changeView = Type.Object({
  /** The heading under which the changelog and the text of the feed list the change. */
  kind: Type.Union([
    Type.Literal("added"),
    Type.Literal("changed"),
    Type.Literal("fixed"),
    Type.Literal("security"),
  ]),
  /** The subject of the change, in a few words. */
  subject: Type.String(),
  /** The behavior before; null for something new. */
  was: Type.Union([Type.String(), Type.Null()]),
  /** The behavior since this release. */
  now: Type.String(),
});

export const releaseView = Type.Object({
  /** `major.minor.patch`. */
  version: Type.String(),
  changes: Type.Array(changeView),
  codesAdded: Type.Array(Type.String()),
  codesRemoved: Type.Array(Type.String()),
});
export type Release = Static<typeof releaseView>;
type Change = Static<typeof changeView>;

/** Groups the changes under the headings of Keep a Changelog. A heading without changes is omitted. */
export function groupChanges(changes: readonly Change[]): { heading: string; changes: readonly Change[] }[] {
  return KINDS.map((kind) => ({
    heading: `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`,
    changes: changes.filter((change) => change.kind === kind),
  })).filter((group) => group.changes.length > 0);
}
