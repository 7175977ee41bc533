/** What a release says of itself in the change feed. */

interface Change {
  /** What the change is about, in a few words. */
  subject: string;
  /** As it was; null where there was nothing. */
  was: string | null;
  /** As it is now. */
  now: string;
}

export interface Release {
  /** `major.minor.patch`. */
  version: string;
  changes: readonly Change[];
  codesAdded: readonly string[];
  codesRemoved: readonly string[];
}
