/**
 * Runs programs with another root folder, in mounts that only they see. Nothing of this machine changes: the kernel removes the mounts with the last
 * program in them. Only root can make such mounts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tellNotRun } from "./not-run.ts";

export interface MountNamespace extends AsyncDisposable {
  /** Returns the words before a command that runs in the other root, as root or as `user`: its number and its group's, such as 1:1. */
  enter(user?: string): string[];
}

const TOOLS = ["unshare", "nsenter", "chroot", "mount", "setpriv"];

/** Says why this machine cannot run `what`, and returns true. Returns false if it can. */
export function lacksNamespaces(what: string, tools: readonly string[] = []): boolean {
  const missing = [...TOOLS, ...tools].filter((tool) => Bun.which(tool) === null);
  if (process.getuid?.() !== 0) tellNotRun(what, "only root can make mounts");
  else if (missing.length > 0) tellNotRun(what, `this machine has no ${missing.join(" and no ")}`);
  else if (!canMount()) tellNotRun(what, "this machine does not let root make mounts");
  else return false;
  return true;
}

/** Tries the mounts of the tests. A container often allows none of them. */
function canMount(): boolean {
  const trial = mkdtempSync(join(tmpdir(), "relay-mount-"));
  const mounts = `mount -t tmpfs tmpfs "${trial}" && mkdir "${trial}/a" "${trial}/b" "${trial}/c" &&
    mount -t overlay overlay -o "lowerdir=/,upperdir=${trial}/a,workdir=${trial}/b" "${trial}/c"`;
  const { exitCode } = Bun.spawnSync(["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts]);
  rmSync(trial, { recursive: true });
  return exitCode === 0;
}

/** Runs the shell lines `setup`, which mount something at `root`. Throws with their output if they fail. */
export async function startNamespace(setup: string, root: string): Promise<MountNamespace> {
  // The standard input ends with this process, and then so does cat.
  const child = Bun.spawn(["unshare", "--mount", "--propagation", "private", "sh", "-ec", `${setup}\necho ready\nexec cat`], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  if (Buffer.from(value ?? "").toString() !== "ready\n") {
    child.kill();
    throw new Error(`The mounts could not be made: ${await new Response(child.stderr).text()}`);
  }
  return {
    enter: (user) => [
      ...["nsenter", `--mount=/proc/${child.pid}/ns/mnt`, "--", Bun.which("chroot") ?? "chroot"],
      ...(user === undefined ? [] : [`--userspec=${user}`, "--groups="]),
      root,
    ],
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}
