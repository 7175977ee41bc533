/**
 * Writes where the files of a release come from: an in-toto statement with the SLSA provenance of version 1. The statement names the commit, the builds
 * of Bun and the hash of each file. It has no signature; the release workflow signs the same hashes.
 */
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { hashFile } from "./checksums.ts";
import { requireLockedBun } from "./fetch-bun.ts";
import { git, type Release } from "./release.ts";

/** Writes `provenance.intoto.json` about these files. Returns no file without a repository or without git. */
export function writeProvenance(
  { out, systems, version, repository }: Release,
  files: readonly string[],
): string[] {
  const commit = git("rev-parse", "HEAD");
  if (repository === null || commit === null) return [];
  const { GITHUB_WORKFLOW_REF: workflow, GITHUB_SERVER_URL: server, GITHUB_RUN_ID: run } = process.env;
  const onGithub = workflow !== undefined && server !== undefined && run !== undefined;
  const ref = `refs/tags/v${version}`;
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject: files.map((file) => ({ name: basename(file), digest: { sha256: hashFile(file) } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: `${repository}/blob/v${version}/docs/adr/0054-release-files.md`,
        externalParameters: { repository, ref, command: "npm run release" },
        // Local changes make other bytes than the commit.
        internalParameters: { uncommittedChanges: git("status", "--porcelain") !== "" },
        resolvedDependencies: [
          { uri: `git+${repository}@${ref}`, digest: { gitCommit: commit } },
          ...systems.map(({ target }) => {
            const { purl, sha512 } = requireLockedBun(target);
            return { uri: purl, digest: { sha512 } };
          }),
        ],
      },
      runDetails: {
        builder: { id: onGithub ? `${server}/${workflow}` : `${repository}#built-by-hand` },
        ...(onGithub ? { metadata: { invocationId: `${repository}/actions/runs/${run}` } } : {}),
      },
    },
  };
  const path = join(out, "provenance.intoto.json");
  writeFileSync(path, `${JSON.stringify(statement, null, 2)}\n`);
  return [path];
}
