/**
 * Fetches the Bun of another system as an npm package, and compares its bytes with the lock file before anything reads them. The package `bun` names
 * most of these packages, so they are in package-lock.json. The baseline builds are in the lock file of scripts/release/bun.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "./release.ts";
import type { ReleasedSystem } from "./systems.ts";

const LOCK_FILES = ["package-lock.json", "scripts/release/bun/package-lock.json"];

interface LockedBun {
  /** The npm package, for example `@oven/bun-linux-aarch64`. */
  name: string;
  version: string;
  /** The hash of the package in the lock file: `sha512-` and base64. */
  integrity: string;
  /** The same hash as hexadecimal digits. */
  sha512: string;
  /** The package in the form of package URLs. */
  purl: string;
}

/** Finds the package of a system's Bun in the lock files. */
export function requireLockedBun(target: ReleasedSystem["target"]): LockedBun {
  const name = `@oven/${target.replace("arm64", "aarch64")}`;
  for (const file of LOCK_FILES) {
    const { packages } = JSON.parse(readFileSync(join(PROJECT, file), "utf8")) as {
      packages: Record<string, { version: string; integrity?: string }>;
    };
    const entry = packages[`node_modules/${name}`];
    if (entry?.integrity?.startsWith("sha512-")) {
      const { version, integrity } = entry;
      const sha512 = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
      return {
        name,
        version,
        integrity,
        sha512,
        purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      };
    }
  }
  throw new Error(
    `${LOCK_FILES.join(" and ")} have no hash of ${name}. Add it to scripts/release/bun/package.json, and run npm install --package-lock-only there.`,
  );
}

/** Compares the bytes of a package with its hash in the lock file. Throws if they differ. */
export function checkIntegrity(
  bytes: Uint8Array,
  { name, version, integrity }: Pick<LockedBun, "name" | "version" | "integrity">,
): void {
  const found = `sha512-${new Bun.CryptoHasher("sha512").update(bytes).digest("base64")}`;
  if (found !== integrity)
    throw new Error(
      `The package ${name}@${version} has the hash ${found}, and the lock file has ${integrity}. Do not use this registry.`,
    );
}

/** Fetches the Bun of a system through npm into `folder`, and returns the path of its executable. Throws if its package is not the locked one. */
export async function fetchBun(target: ReleasedSystem["target"], folder: string): Promise<string> {
  const locked = requireLockedBun(target);
  const npm = Bun.which("npm");
  if (npm === null)
    throw new Error("The Bun of another system comes from npm, which is not on the PATH. Install npm.");
  const words = ["pack", `${locked.name}@${locked.version}`, "--ignore-scripts", "--json"];
  const child = Bun.spawn([npm, ...words, "--pack-destination", folder], {
    cwd: folder,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0)
    throw new Error(`npm could not fetch ${locked.name}@${locked.version}; see above.`);
  const [{ filename = "" } = {}] = JSON.parse(output) as { filename?: string }[];
  const bytes = readFileSync(join(folder, filename));
  checkIntegrity(bytes, locked);
  const path = target.includes("windows") ? "package/bin/bun.exe" : "package/bin/bun";
  const file = (await new Bun.Archive(bytes).files(path)).get(path);
  if (file === undefined) throw new Error(`The package ${locked.name}@${locked.version} lacks ${path}.`);
  const executable = join(folder, "bun");
  writeFileSync(executable, new Uint8Array(await file.arrayBuffer()));
  return executable;
}
