/** Finds the commit of a folder by running git. A folder outside of git, or a machine without git, has none. */

const COMMIT = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
/** A repository on a slow disk must not delay a sync for long. */
const MAX_WAIT_MS = 5_000;

/** Returns the commit, with `-dirty` if files of the folder have changes that are in no commit. */
export async function findCommit(folder: string): Promise<string | null> {
  const head = await runGit(folder, ["rev-parse", "--verify", "--quiet", "HEAD"]);
  if (head === null || !COMMIT.test(head)) return null;
  const changes = await runGit(folder, ["status", "--porcelain", "--", "."]);
  if (changes === null) return null;
  return changes === "" ? head : `${head}-dirty`;
}

/** Runs git and returns its output. Returns null if git fails or does not exist. It does not start the file watcher that the settings of the repository can name. */
async function runGit(folder: string, words: readonly string[]): Promise<string | null> {
  try {
    const git = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", folder, ...words];
    const child = Bun.spawn(git, { stdin: "ignore", stdout: "pipe", stderr: "ignore", timeout: MAX_WAIT_MS });
    const output = await new Response(child.stdout).text();
    return (await child.exited) === 0 ? output.trim() : null;
  } catch {
    return null;
  }
}
