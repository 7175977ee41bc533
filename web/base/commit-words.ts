/** Words for the git commit of a synced folder. */

const SHORT_COMMIT_CHARS = 7;

/** Formats a commit, such as `1a2b3c4`, or `1a2b3c4 with changes that are not committed`. */
export function formatCommit(commit: string): string {
  const short = commit.slice(0, SHORT_COMMIT_CHARS);
  return commit.endsWith("-dirty") ? `${short} with changes that are not committed` : short;
}
