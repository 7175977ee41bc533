/** A copy of the project for mutants, so that the working tree never contains a fault. Disposal removes all of it. */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Folders that are not copied if git cannot list the files of the project. */
const LEFT_OUT = ["node_modules", ".git", "dist", ".relay", "service"];

export interface PrivateTree extends Disposable {
  root: string;
  /** The folder that its tests write to. */
  scratch: string;
}

export function copyTree(project: string): PrivateTree {
  const folder = mkdtempSync(join(tmpdir(), "relay-mutants-"));
  const [root, scratch] = [join(folder, "tree"), join(folder, "tmp")];
  mkdirSync(scratch);
  // PostgreSQL runs as another user, so the folders need the permissions of the system's temporary folder.
  for (const one of [folder, scratch]) chmodSync(one, 0o711);
  for (const file of listFiles(project)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(join(project, file), join(root, file));
  }
  const modules = join(project, "node_modules");
  if (existsSync(modules)) symlinkSync(modules, join(root, "node_modules"));
  return {
    root,
    scratch,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** Lists the current files of the project, including uncommitted ones. */
function listFiles(project: string): string[] {
  const git = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: project,
  });
  const files = git.success
    ? git.stdout.toString().split("\0")
    : [...new Bun.Glob("**/*").scanSync({ cwd: project, dot: true })].filter(
        (file) => !LEFT_OUT.includes(file.split("/")[0] ?? ""),
      );
  return files.filter((file) => file !== "" && existsSync(join(project, file)));
}
