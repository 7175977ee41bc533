/**
 * Carries the definition files and the catalog to a server's development environment (`relay sync`). It shows the plan first, then carries
 * out exactly that.
 */
import { existsSync } from "node:fs";
import { isJsonObject, type Json, writeJson } from "../../../base/json.ts";
import { MINUTE_MS } from "../../../base/limit.ts";
import { Refusal } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import { catalogPath } from "../../../operator/sync/catalog-file.ts";
import { listItems } from "../../../operator/sync/catalog-file-edit.ts";
import { listDefinitionFiles, relaysFolder } from "../../../operator/sync/definition-file.ts";
import { parseTarget } from "../../../operator/sync/deployed-state.ts";
import { checkFiles } from "../../../operator/sync/file-set.ts";
import { readJsonFile } from "../../../operator/sync/json-file.ts";
import { readMergeBase, writeMergeBase } from "../../../operator/sync/merge-base.ts";
import { isChange } from "../../../operator/sync/plan.ts";
import type { EntryView, PlanPreview, PlanResult } from "../../../operator/sync/plan-view.ts";
import { formatPath } from "../../../operator/sync/pull-write.ts";
import { listSeen, MAX_SEEN_ITEMS, type ReadFileItem } from "../../../operator/sync/side-comparison.ts";
import { syncTarget } from "../../../operator/sync/synced.ts";
import { readLocalSecrets } from "../../../platform/secret/local-secrets.ts";
import { requireServer } from "../api/connect.ts";
import type { Remote } from "../api/remote.ts";
import { TARGET } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { requestApply } from "./apply-request.ts";
import { carryLive, LIVE_EXIT_CODES, OPEN, requireSecretsFile } from "./live.ts";
import {
  CHECK,
  type Decided,
  DRY_RUN,
  decidePlan,
  keepSecrets,
  placeOf,
  printLeft,
  REPLACE,
} from "./plan-decision.ts";
import { count } from "./plan-lines.ts";
import { formatProblemsMarkdown } from "./plan-markdown.ts";
import { WAIT, waitForApprovals, waitForTurn } from "./sync-wait.ts";

export const sync: Command = {
  words: ["sync"],
  summary: "deploy the definition files to a server",
  details: `The command deploys the definition files and the catalog to development, or with --live to production. It shows the plan first, then applies exactly this plan in one transaction. If a file or the environment changed meanwhile, it applies nothing.\nIt deploys only definitions, never data or secrets, and deletes nothing without --prune. The command compares each file with the server by what this folder last saw, from .synced.json. If only the server changed, the command refuses and names who changed it: run relay pull first. If both changed, it asks, and refuses without a terminal. --yes replaces the server's version in both cases. The server keeps the git commit of the folder. New secrets of the server are written to .secrets.json of the service directory.\nWith --live, an owner must approve exactly the plan in the browser within 10 minutes, while the command waits. A change of the files or of production meanwhile voids the approval.\nWith --check, the command prints Markdown for the comment of a pull request, and changes nothing. It refuses what the sync would refuse, and never asks.\nExit codes of --check:\n  0: no changes\n  1: refused or failed\n  3: changes\n${LIVE_EXIT_CODES}`,
  options: [
    { name: "live", help: "deploy to production, after an owner approves in the browser" },
    DRY_RUN,
    CHECK,
    REPLACE,
    {
      name: "prune",
      help: "delete synced relays whose file is gone, unless they were edited; not with --live",
    },
    WAIT,
    { ...OPEN, help: "open the page of the approval in the browser, with --live" },
    JSON_OUTPUT,
    ...TARGET,
    SERVICE_DIR,
  ],
  examples: [
    "relay sync --profile shop",
    "RELAY_KEY=… relay sync --url https://relay.example.com",
    "relay sync --dry-run --json",
    "relay sync --check",
    "relay sync --prune --yes",
    "relay sync --wait",
    "relay sync --live --dry-run",
    "relay sync --live --open",
  ],
  async run(input, io) {
    const serviceDir = readServiceDir(input, io);
    const isLive = input.on("live");
    if (isLive && input.on("prune"))
      throw new UsageError(
        "--prune works only for development: delete a relay of production in its dashboard.",
      );
    // An approval protects production better than the name of a profile.
    const remote = await requireServer(input, io, { writes: !isLive && !changesNothing(input) });
    if (!isLive && remote.environment === "production")
      throw new CommandFailure(
        "approval_needed",
        "This key is for production. An owner must approve each change of production: add --live to request an approval.",
      );
    if (!isLive) return await waitForTurn(input, io, () => syncDevelopment(remote, serviceDir, input, io));
    if (input.on("wait")) await waitForApprovals(remote, io);
    return await syncLive(remote, serviceDir, input, io);
  },
};

async function syncDevelopment(remote: Remote, serviceDir: string, input: Input, io: Io): Promise<number> {
  const files = await readFiles(serviceDir, remote, input, io);
  const place = placeOf(remote);
  const folder = await describeFolder(serviceDir, place, files, io);
  const set = { ...files, ...folder, prune: input.on("prune") };
  // A secrets file that cannot be written is found before the server creates a secret.
  const requireReady = async (): Promise<void> => void (await readLocalSecrets(serviceDir));
  const sides = { source: "the files", into: "", pull: "relay pull", place, requireReady };
  const decided = await decidePlan(remote, set, sides, input, io);
  if (decided.code !== null) return await endWithout(decided, files, serviceDir, place, input);
  const { plan, sent, replaceEdited, left } = decided;
  await requireSameFiles(files, serviceDir);
  const asked = { ...sent, replaceEdited, plan: plan.plan };
  const { secrets, ...done } = await requestApply(
    (keyed) => remote.request<PlanResult>("POST", "/sync/apply", { ...asked, ...keyed }),
    { forMs: REPEATED_FOR_MS, isOnce: false },
    io,
  ).catch((error: unknown) => {
    if (error instanceof CommandFailure)
      io.inform(
        "It is unknown if the plan was applied: relay sync --dry-run shows what is left. Rotate new secrets in the dashboard.",
      );
    throw error;
  });
  await keepSecrets(secrets, serviceDir, place, io);
  await rememberSynced(done.entries, files, serviceDir, place, isSynced(replaceEdited));
  if (input.on("json")) {
    const made = secrets.map(({ relay }) => relay);
    io.print(writeJson({ ...done, refusal: null, applied: true, secretsOf: made }, 2));
  }
  io.inform(`${count(done.changes, "change")} made in ${plain(place)}.`);
  return printLeft(left, sides.pull, io);
}

/** The time in which the command repeats an apply after a lost response. A restart of the server takes less. */
const REPEATED_FOR_MS = MINUTE_MS;

function changesNothing(input: Input): boolean {
  return input.on("dry-run") || input.on("check");
}

/** Returns the exit code of a sync that carries nothing out. It records what is the same, also in a fresh clone. */
async function endWithout(
  { plan, code, left }: Decided,
  files: Sent,
  serviceDir: string,
  place: string,
  input: Input,
): Promise<number> {
  const isDone = code === 0 || left.length > 0;
  if (isDone && !changesNothing(input))
    await rememberSynced(plan.entries, files, serviceDir, place, ({ state }) => state === "unchanged");
  return code ?? 0;
}

async function syncLive(remote: Remote, serviceDir: string, input: Input, io: Io): Promise<number> {
  const files = await readFiles(serviceDir, remote, input, io);
  const place = `${remote.url}/${remote.app}/production`;
  const folder = await describeFolder(serviceDir, place, files, io);
  const set = { ...files, ...folder, to: "production" };
  const sides = {
    source: "the files",
    into: " of production",
    pull: "relay pull with a profile of production",
    place,
    requireReady: (plan: PlanPreview) => requireSecretsFile(plan, serviceDir),
  };
  const decided = await decidePlan(remote, set, sides, input, io);
  if (decided.code !== null) return await endWithout(decided, files, serviceDir, place, input);
  const change = { decided, serviceDir, requireSame: () => requireSameFiles(files, serviceDir) };
  const done = await carryLive(remote, change, input, io);
  if (typeof done === "number") return done;
  await rememberSynced(done.entries, files, serviceDir, place, isSynced(decided.replaceEdited));
  return printLeft(decided.left, sides.pull, io);
}

interface Sent {
  relays: Json[];
  catalog: Json;
}

/** Reads the files for the request. It prints each problem that a save would find, then refuses with `invalid_definition`. */
async function readFiles(serviceDir: string, remote: Remote, input: Input, io: Io): Promise<Sent> {
  const paths = await listDefinitionFiles(serviceDir);
  const catalog = catalogPath(serviceDir);
  const all = existsSync(catalog) ? [...paths, catalog] : paths;
  if (all.length === 0 || (input.on("prune") && !existsSync(relaysFolder(serviceDir)))) {
    throw new CommandFailure(
      "not_found",
      `There is nothing to sync in ${serviceDir}: name the folder that contains relays/ with --service-dir, or create it with relay init.`,
    );
  }
  const checked = await checkFiles(all, { nowMs: io.clock.now(), baseUrl: remote.url });
  const problems = checked.flatMap(({ path, problems }) => problems.map((problem) => ({ path, ...problem })));
  for (const { path, place, message } of problems) {
    io.inform(`${plain(path)}${place === null ? "" : `:${place.line}:${place.column}`}  ${plain(message)}`);
  }
  if (problems.length > 0) {
    if (input.on("check") && !input.on("json")) {
      const listed = problems.map(({ path, place, message }) => ({
        where: `${formatPath(io.cwd, path)}${place === null ? "" : `:${place.line}`}`,
        message,
      }));
      io.print(formatProblemsMarkdown(listed));
    }
    throw new Refusal("invalid_definition", "The files have problems, so nothing was sent: fix them first.", {
      problems: problems.map(({ field, message }) => ({ field, message })),
    });
  }
  return await readSent(serviceDir);
}

async function readSent(serviceDir: string): Promise<Sent> {
  const read = async (path: string): Promise<Json> => {
    const file = await readJsonFile(path);
    if (file.ok) return file.value;
    throw new CommandFailure(
      "version_conflict",
      `${path} changed while the command read it: run the command again.`,
    );
  };
  const relays: Json[] = [];
  for (const path of await listDefinitionFiles(serviceDir)) relays.push(await read(path));
  const catalog = catalogPath(serviceDir);
  return { relays, catalog: existsSync(catalog) ? await read(catalog) : null };
}

/** Fails if the files changed since the plan was shown, because the plan describes the files as shown. */
async function requireSameFiles(sent: Sent, serviceDir: string): Promise<void> {
  if (writeJson(await readSent(serviceDir)) === writeJson(sent)) return;
  throw new CommandFailure(
    "version_conflict",
    "The files changed after the plan was shown, so nothing was applied: run relay sync again.",
  );
}

/** Lists the items of the files by target. */
function listFileItems({ relays, catalog }: Sent): Map<string, ReadFileItem> {
  const items = new Map<string, ReadFileItem>();
  for (const one of relays) if (isJsonObject(one)) items.set(`relay:${one.name}`, () => one);
  for (const item of listItems(catalog)) items.set(syncTarget(item), (current) => item.resolve(current));
  return items;
}

/** Describes to the server what the folder last saw of the environment, and the folder's commit. */
async function describeFolder(serviceDir: string, place: string, files: Sent, io: Io) {
  const memory = await readMergeBase(serviceDir, place);
  const seen = listSeen(memory, listFileItems(files));
  const isKnown = memory.size > 0 && seen.size <= MAX_SEEN_ITEMS;
  const base = [...seen].map(([target, one]) => ({ ...parseTarget(target), ...one }));
  const commit = await io.findCommit(serviceDir);
  return { ...(isKnown ? { base } : {}), ...(commit === null ? {} : { commit }) };
}

/** Records what the files and the server have in common. The next sync and `relay pull` derive from it which side changed. */
async function rememberSynced(
  entries: readonly EntryView[],
  files: Sent,
  serviceDir: string,
  place: string,
  isRecorded: (entry: EntryView) => boolean,
): Promise<void> {
  const memory = await readMergeBase(serviceDir, place);
  const items = listFileItems(files);
  for (const entry of entries) {
    const target = syncTarget(entry);
    if (entry.state === "deleted") memory.delete(target);
    else if (isRecorded(entry)) {
      const content = (entry.content as Json | undefined) ?? items.get(target)?.(null);
      if (content !== undefined) memory.set(target, content);
    }
  }
  await writeMergeBase(serviceDir, place, memory);
}

/** Reports whether both sides are the same after the plan is applied. */
function isSynced(replaceEdited: boolean) {
  return (entry: EntryView): boolean => entry.state === "unchanged" || isChange(entry, replaceEdited);
}
