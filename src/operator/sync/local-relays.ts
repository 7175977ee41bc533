/**
 * Keeps relays and their definition files the same in local development. Applies changed files, and writes relays that the dashboard
 * created, edited or deleted. The last common content (synced.ts) tells which side changed, so a crash between the two sides loses
 * nothing.
 */
import { existsSync } from "node:fs";
import { parseJson, writeJson } from "../../base/json.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import type { LocalSecrets } from "../../platform/secret/local-secrets.ts";
import { listRelayRows, type RelayRow, relayOf, relayTarget } from "../../rules/relay/relay.ts";
import { checkDefinitionFile, definitionPath, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type FileProblem, type FileText, parseFileText, readModifiedMs } from "./json-file.ts";
import { applyRelay, matchesFile, recordSyncedRelay, removeRelay } from "./local-apply.ts";
import { FOLDER_TARGET, type LocalProblems } from "./local-problem.ts";
import type { LocalDeps } from "./local-secret.ts";
import type { LocalWrite } from "./local-write.ts";
import { deleteSynced, listSynced } from "./synced.ts";

/** The time that a file must be missing before its relay is deleted. A switch of branches, a stash or an editor's rename takes less. */
const DELETE_AFTER_MS = 10_000;
/** The time that a file must be missing before that is printed. */
const NOTIFY_AFTER_MS = 1_500;

export class LocalRelays {
  /** The relays saved in this run. */
  readonly saved = new Set<string>();
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;
  readonly #write: LocalWrite;
  /** The monotonic time since which each relay's file is missing, and whether that was printed. */
  readonly #missing = new Map<string, { sinceMs: number; isReported: boolean }>();
  /** The monotonic time since which the folder of all definition files is missing. */
  #folderMissingSinceMs: number | null = null;
  /** Relays that were edited in the dashboard and earlier in the file, whose old text must be saved. */
  readonly #keepsOld = new Set<string>();

  #removed = false;

  constructor(deps: LocalDeps, notes: LocalProblems, write: LocalWrite) {
    this.#deps = deps;
    this.#problems = notes;
    this.#write = write;
  }

  /** The milliseconds until the next check; null if nothing waits. */
  get nextCheckMs(): number | null {
    const now = this.#deps.clock.monotonicMs();
    const ends = [...this.#missing.values()].map(
      ({ sinceMs, isReported }) => sinceMs + (isReported ? DELETE_AFTER_MS : NOTIFY_AFTER_MS) - now,
    );
    return ends.length === 0 ? null : Math.max(0, Math.min(...ends));
  }

  /** Returns whether a relay was deleted since the last call. */
  takeRemoved(): boolean {
    const removed = this.#removed;
    this.#removed = false;
    return removed;
  }

  /** Applies a file. Returns whether a relay changed. */
  async apply(
    path: string,
    read: FileText,
    secrets: (name: string) => Promise<LocalSecrets>,
  ): Promise<boolean> {
    const { print } = this.#deps;
    const name = relayNameOf(path);
    const target = relayTarget(name);
    const file = checkDefinitionFile(name, parseFileText(read));
    if (!file.ok) {
      this.#reportProblems(path, file.problems);
      this.#problems.set("definition_broken", target, file.problems.map(({ message }) => message).join(" "));
      return false;
    }
    const { definition } = file;
    const held = await secrets(name);
    const callsUrl = definition.actions.some(({ type }) => type === "call_url");
    const applied = await applyRelay(this.#deps, {
      definition,
      secret: held.receiverSecret ?? null,
      signingSecret: callsUrl ? (held.signingSecret ?? null) : null,
      writtenMs: await readModifiedMs(path),
    });
    const shown = this.#write.formatPath(path);
    if (applied.outcome === "refused") {
      if (this.#problems.set("definition_broken", target, applied.message))
        print(`${shown}  ${applied.message}`);
      return false;
    }
    const isFixed = this.#problems.clear("definition_broken", target);
    if (isFixed && applied.outcome === "same") print(`relay ${name}: ${shown} is good again and in force`);
    if (applied.outcome === "behind" && applied.newer) this.#keepsOld.add(name);
    if (applied.outcome !== "created" && applied.outcome !== "changed") return false;
    print(`relay ${name}: ${applied.outcome} from ${shown}`);
    if (applied.outcome === "changed" && applied.overwritesEdit)
      print(
        `relay ${name}: ${shown} is newer than the dashboard's edit, which no file had: that one is in the audit`,
      );
    for (const { message } of applied.warnings) print(`relay ${name}: warning: ${message}`);
    this.saved.add(name);
    return true;
  }

  /**
   * Writes what the dashboard changed, and deletes relays whose files are missing for long enough. Updates `texts` to what the files then
   * say.
   */
  async writeBack(texts: Map<string, FileText>): Promise<boolean> {
    const { store, environment, serviceDir } = this.#deps;
    const { rows, brought } = await store.read(async (tx) => ({
      rows: await listRelayRows(tx, environment.id),
      brought: await listSynced(tx, environment.id),
    }));
    const withoutFile: string[] = [];
    const hadFiles = [...brought.keys()].some((target) => relayOf(target) !== null);
    const isAway = hadFiles && !existsSync(relaysFolder(serviceDir));
    for (const row of rows) {
      const base = brought.get(relayTarget(row.name)) ?? null;
      const path = definitionPath(serviceDir, row.name);
      if (!texts.has(path) && matchesFile(row, base)) withoutFile.push(row.name);
      else await this.#writeFile(row, base, path, texts, isAway);
      brought.delete(relayTarget(row.name));
    }
    for (const [target, base] of brought) {
      const name = relayOf(target);
      if (name === null) continue;
      if (isAway) this.#write.recordUnwritten(definitionPath(serviceDir, name), target, "its folder is away");
      else await this.#removeFileOfDeleted(name, base, texts);
    }
    this.#reportMissingFolder(isAway ? withoutFile.length : null);
    return await this.#deleteMissing(isAway ? [] : withoutFile, new Set(isAway ? withoutFile : []));
  }

  /** Writes the relay to its file where the file has the last common content. */
  async #writeFile(
    row: RelayRow,
    base: string | null,
    path: string,
    texts: Map<string, FileText>,
    isAway: boolean,
  ) {
    const { name, definition } = row;
    const target = relayTarget(name);
    const storedContent = writeJson(definition);
    if (base === storedContent) return;
    const file = texts.get(path);
    const read = file !== undefined && "text" in file ? file.text : null;
    const parsed = read === null ? null : parseContent(read);
    if (parsed !== storedContent) {
      if (file !== undefined && parsed !== base && !this.#keepsOld.has(name)) return;
      if (isAway) {
        this.#write.recordUnwritten(path, target, "its folder is away");
        return;
      }
      const keepsOld = this.#keepsOld.has(name);
      const text = this.#write.write({ path, read, value: parseJson(storedContent), keepsOld, target });
      if (typeof text !== "string") return;
      texts.set(path, { text });
      this.#keepsOld.delete(name);
      const done = base === null ? "made" : "edited";
      this.#deps.print(
        `relay ${name}: ${done} in the dashboard, and written to ${this.#write.formatPath(path)}`,
      );
    } else this.#problems.clear("file_behind", target);
    await this.#deps.store.write("dashboard", (tx) => recordSyncedRelay(tx, this.#deps, definition));
  }

  /** Removes the file of a relay that the dashboard deleted. A file that was edited since creates the relay again. */
  async #removeFileOfDeleted(name: string, base: string, texts: Map<string, FileText>): Promise<void> {
    const { store, environment, serviceDir, print } = this.#deps;
    const target = relayTarget(name);
    const path = definitionPath(serviceDir, name);
    const file = texts.get(path);
    if (file !== undefined) {
      const read = "text" in file ? file.text : null;
      if (read === null || parseContent(read) !== base) return;
      if (this.#write.write({ path, read, value: null, keepsOld: false, target }) === undefined) return;
      texts.delete(path);
      print(`relay ${name}: deleted in the dashboard, and ${this.#write.formatPath(path)} with it`);
    }
    this.#problems.clear("file_behind", target);
    await store.write("dashboard", (tx) => deleteSynced(tx, environment.id, target));
  }

  async #deleteMissing(withoutFile: readonly string[], folder: ReadonlySet<string>): Promise<boolean> {
    const { clock, print, serviceDir } = this.#deps;
    const now = clock.monotonicMs();
    for (const [name, { isReported }] of this.#missing) {
      if (withoutFile.includes(name)) continue;
      this.#missing.delete(name);
      if (isReported && !folder.has(name)) print(`relay ${name}: its file is back`);
    }
    let removed = false;
    for (const name of withoutFile) {
      const since = this.#missing.get(name) ?? { sinceMs: now, isReported: false };
      this.#missing.set(name, since);
      const path = definitionPath(serviceDir, name);
      if (now - since.sinceMs >= DELETE_AFTER_MS) {
        if (existsSync(path)) continue;
        this.#missing.delete(name);
        this.#problems.clear("file_behind", relayTarget(name));
        const warnings = await this.#removeRelay(name);
        if (warnings === null) continue;
        removed = true;
        this.#removed = true;
        print(`relay ${name}: deleted, its file has been gone for ${DELETE_AFTER_MS / 1000} seconds`);
        for (const { message } of warnings) print(`relay ${name}: warning: ${message}`);
      } else if (!since.isReported && now - since.sinceMs >= NOTIFY_AFTER_MS) {
        since.isReported = true;
        print(
          `relay ${name}: ${this.#write.formatPath(path)} is gone; the relay is deleted in ${Math.ceil((DELETE_AFTER_MS - now + since.sinceMs) / 1000)} seconds unless it comes back`,
        );
      }
    }
    return removed;
  }

  /** Deletes the relay of a missing file. Returns null where it stays: the dashboard changed it, or other relays follow it. */
  async #removeRelay(name: string): Promise<readonly Warning[] | null> {
    try {
      return await removeRelay(this.#deps, name);
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== "receiver_followed") throw error;
      this.#deps.print(`relay ${name}: not deleted. ${error.message}`);
      return null;
    }
  }

  /**
   * A missing folder is more likely a switch of branches or a wrong path than a wish to delete every relay. `relays`: how many are
   * affected; null if the folder exists.
   */
  #reportMissingFolder(relays: number | null): void {
    const { clock, serviceDir, print } = this.#deps;
    const folder = existsSync(serviceDir) ? relaysFolder(serviceDir) : serviceDir;
    if (relays === null) {
      this.#folderMissingSinceMs = null;
      if (this.#problems.clear("folder_away", FOLDER_TARGET))
        print(`${this.#write.formatPath(relaysFolder(serviceDir))} is back`);
      return;
    }
    this.#folderMissingSinceMs ??= clock.monotonicMs();
    const isRaised = this.#problems.list("folder_away").has(FOLDER_TARGET);
    if (isRaised || clock.monotonicMs() - this.#folderMissingSinceMs < NOTIFY_AFTER_MS) return;
    const message = `${this.#write.formatPath(folder)} is gone: its relays (${relays}) stay in force and nothing is deleted. Put it back; to delete relays, delete them in the dashboard, or make the folder again without their files.`;
    if (this.#problems.set("folder_away", FOLDER_TARGET, message)) print(message);
  }

  #reportProblems(path: string, problems: readonly FileProblem[]): void {
    const file = this.#write.formatPath(path);
    for (const { place, message } of problems)
      this.#deps.print(`${file}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
    this.#deps.print(`${file}  is not applied; what was good before stays in force.`);
  }
}

/** Normalizes a file's text to the JSON that the database stores. Returns null if it is not JSON. */
function parseContent(text: string): string | null {
  try {
    return writeJson(parseJson(text.replace(/^\uFEFF/, "")));
  } catch {
    return null;
  }
}
