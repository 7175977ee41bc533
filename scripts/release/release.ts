/**
 * Describes what the writers of a release share. Each writer is a function `writeX(release)` that writes files into the folder `release.out` and
 * returns their paths. main.ts calls the writers in turn, and then writes the checksums of all those files.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ReleasedSystem } from "./systems.ts";

/** The root of the repository. */
export const PROJECT = resolve(import.meta.dir, "../..");

export interface Release {
  /** The folder with the executables, named as executableFile says. */
  readonly built: string;
  /** The folder of the files that are uploaded. It exists. */
  readonly out: string;
  /** The systems whose executables are in `built`. */
  readonly systems: readonly ReleasedSystem[];
  readonly version: string;
  /** The time of every file inside an archive, in whole seconds. The same commit gives the same time, so also the same bytes. */
  readonly time: Date;
  /** The https address of the published repository. Null as long as package.json has no field `repository`. */
  readonly repository: string | null;
}

/** Writes files of one kind into `release.out` and returns their paths. */
export type ReleaseWriter = (release: Release) => string[] | Promise<string[]>;

export interface ProjectManifest {
  version: string;
  description: string;
  license: string;
  repository?: string | { url: string };
  engines: { node: string };
}

export function readManifest(): ProjectManifest {
  return JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")) as ProjectManifest;
}

/**
 * Reads the https address of the repository from package.json, without `git+` and `.git`. Null if there is no such field. It is the one place that
 * names where releases are published. Throws if the address is not one of https.
 */
export function readRepository({ repository }: Pick<ProjectManifest, "repository">): string | null {
  if (repository === undefined) return null;
  const url = typeof repository === "string" ? repository : repository.url;
  const address = url.replace(/^git\+/, "").replace(/\.git$/, "");
  if (!/^https:\/\/[\w.-]+(\/[\w.-]+){2,}$/.test(address))
    throw new Error(
      `package.json: repository is "${url}". Set it to an address such as git+https://github.com/owner/name.git.`,
    );
  return address;
}

/** Returns the address below which a repository has its releases. */
export function releasesUrl(repository: string | null): string | null {
  return repository === null ? null : `${repository}/releases`;
}

/** Returns the time of a release, or 1980 for sources without git. */
export function readReleaseTime(): Date {
  return findReleaseTime() ?? new Date(Date.UTC(1980, 0, 1));
}

/** Finds the time of the sources: SOURCE_DATE_EPOCH, or the time of the commit; null without either. */
export function findReleaseTime(): Date | null {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && !/^\d{1,11}$/.test(given))
    throw new Error(`SOURCE_DATE_EPOCH is "${given}". Set it to whole seconds since 1970, or remove it.`);
  const seconds = given ?? git("log", "-1", "--format=%ct");
  return seconds === null ? null : new Date(Number(seconds) * 1000);
}

/** Runs git in the repository and returns what it prints. Returns null if git fails or is missing. */
export function git(...words: string[]): string | null {
  try {
    const { success, stdout } = Bun.spawnSync(["git", ...words], { cwd: PROJECT, stderr: "ignore" });
    return success ? stdout.toString().trimEnd() : null;
  } catch {
    return null;
  }
}
