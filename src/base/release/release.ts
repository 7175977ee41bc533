/** Defines the shape of a release in the change feed: in a file of changes/ and in /changes.json. */
import { type Static, Type } from "typebox";

const changeView = Type.Object({
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
