/**
 * Relays and their definition files in local development: one truth. A file that changed is applied; a relay that the dashboard made, edited or
 * deleted is written to its file. Which side moved is told by what both had last (synced.ts), so that a crash between the two loses nothing.
 */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { parseJson, writeJson } from "../../base/json.ts";
import type { LocalSecrets } from "../../platform/secret/local-secrets.ts";
import { listRelayRows, type RelayRow, relayTarget } from "../../rules/relay/relay.ts";
import { applyRelay, isOfFile, remember, removeRelay } from "./apply.ts";
import { checkDefinitionFile, definitionPath, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type FileProblem, type FileText, parseFileText } from "./json-file.ts";
import { FOLDER_TARGET, type LocalNotes } from "./local-notes.ts";
import type { LocalDeps } from "./local-secret.ts";
import type { LocalWrite } from "./local-write.ts";
import { forgetBrought, listBrought } from "./synced.ts";

/** How long a file may be away before its relay goes: longer than a switch of branches, a stash or an editor's rename takes. */
const PATIENCE_MS = 10_000;
/** A file that is away so long is told of. */
const TOLD_AFTER_MS = 1_500;

export class LocalRelays {
  /** The relays saved at this look. */
  readonly saved = new Set<string>();
  readonly #deps: LocalDeps;
  readonly #notes: LocalNotes;
  readonly #write: LocalWrite;
  /** Since when the files of these relays are away, by the clock that never jumps; told: its absence was. */
  readonly #away = new Map<string, { sinceMs: number; told: boolean }>();
  /** Since when the folder of them all is. */
  #folderAwayMs: number | null = null;
  /** Edited in the dashboard, and in the file before: the file's text is to be kept. */
  readonly #keepsOld = new Set<string>();

  #removed = false;

  constructor(deps: LocalDeps, notes: LocalNotes, write: LocalWrite) {
    this.#deps = deps;
    this.#notes = notes;
    this.#write = write;
  }

  /** In how many milliseconds something is to be looked at again; null: nothing waits. */
  get waitsMs(): number | null {
    const now = this.#deps.clock.monotonicMs();
    const ends = [...this.#away.values()].map(
      ({ sinceMs, told }) => sinceMs + (told ? PATIENCE_MS : TOLD_AFTER_MS) - now,
    );
    return ends.length === 0 ? null : Math.max(0, Math.min(...ends));
  }

  /** Whether a relay was deleted since this was asked last. */
  takeRemoved(): boolean {
    const removed = this.#removed;
    this.#removed = false;
    return removed;
  }

  /** Brings a file into force; answers whether a relay changed. */
  async apply(
    path: string,
    read: FileText,
    secrets: (name: string) => Promise<LocalSecrets>,
  ): Promise<boolean> {
    const { tell } = this.#deps;
    const name = relayNameOf(path);
    const target = relayTarget(name);
    const file = checkDefinitionFile(name, parseFileText(read));
    if (!file.ok) {
      this.#tellProblems(path, file.problems);
      this.#notes.set("definition_broken", target, file.problems.map(({ message }) => message).join(" "));
      return false;
    }
    const { definition } = file;
    const held = await secrets(name);
    const callsUrl = definition.actions.some(({ type }) => type === "call_url");
    const applied = await applyRelay(this.#deps, {
      definition,
      secret: held.receiverSecret ?? null,
      signingSecret: callsUrl ? (held.signingSecret ?? null) : null,
      writtenMs: await writtenAt(path),
    });
    const shown = this.#write.show(path);
    if (applied.outcome === "refused") {
      if (this.#notes.set("definition_broken", target, applied.message)) tell(`${shown}  ${applied.message}`);
      return false;
    }
    const mended = this.#notes.clear("definition_broken", target);
    if (mended && applied.outcome === "same") tell(`relay ${name}: ${shown} is good again and in force`);
    if (applied.outcome === "behind" && applied.newer) this.#keepsOld.add(name);
    if (applied.outcome !== "created" && applied.outcome !== "changed") return false;
    tell(`relay ${name}: ${applied.outcome} from ${shown}`);
    if (applied.outcome === "changed" && applied.overEdit)
      tell(
        `relay ${name}: ${shown} is newer than the dashboard's edit, which no file had: that one is in the audit`,
      );
    for (const { message } of applied.warnings) tell(`relay ${name}: warning: ${message}`);
    this.saved.add(name);
    return true;
  }

  /** Writes what the dashboard changed, and takes along what has been away long enough. `texts` becomes what the files say then. */
  async settle(texts: Map<string, FileText>): Promise<boolean> {
    const { store, environment, serviceDir } = this.#deps;
    const { rows, brought } = await store.read(async (tx) => ({
      rows: await listRelayRows(tx, environment.id),
      brought: await listBrought(tx, environment.id),
    }));
    const away: string[] = [];
    const hadFiles = [...brought.keys()].some((target) => target.startsWith("relay:"));
    const isAway = hadFiles && !existsSync(relaysFolder(serviceDir));
    for (const row of rows) {
      const base = brought.get(relayTarget(row.name)) ?? null;
      const path = definitionPath(serviceDir, row.name);
      if (!texts.has(path) && isOfFile(row, base)) away.push(row.name);
      else await this.#follow(row, base, path, texts, isAway);
      brought.delete(relayTarget(row.name));
    }
    for (const [target, base] of brought) {
      if (!target.startsWith("relay:")) continue;
      const path = definitionPath(serviceDir, target.slice("relay:".length));
      if (isAway) this.#write.refuse(path, target, "its folder is away");
      else await this.#removeDeleted(target, base, texts);
    }
    this.#tellFolder(isAway ? away.length : null);
    return await this.#removeAway(isAway ? [] : away, new Set(isAway ? away : []));
  }

  /** Writes the relay to its file where the file is as both had it. */
  async #follow(
    row: RelayRow,
    base: string | null,
    path: string,
    texts: Map<string, FileText>,
    isAway: boolean,
  ) {
    const { name, definition } = row;
    const target = relayTarget(name);
    const stands = writeJson(definition);
    if (base === stands) return;
    const file = texts.get(path);
    const read = file !== undefined && "text" in file ? file.text : null;
    const said = read === null ? null : saidBy(read);
    if (said !== stands) {
      if (file !== undefined && said !== base && !this.#keepsOld.has(name)) return;
      if (isAway) {
        this.#write.refuse(path, target, "its folder is away");
        return;
      }
      const keepsOld = this.#keepsOld.has(name);
      const text = this.#write.write({ path, read, value: parseJson(stands), keepsOld, target });
      if (typeof text !== "string") return;
      texts.set(path, { text });
      this.#keepsOld.delete(name);
      const done = base === null ? "made" : "edited";
      this.#deps.tell(`relay ${name}: ${done} in the dashboard, and written to ${this.#write.show(path)}`);
    } else this.#notes.clear("file_behind", target);
    await this.#deps.store.write("dashboard", (tx) => remember(tx, this.#deps, definition));
  }

  /** Takes the file of a relay that the dashboard deleted; one that was edited since makes it again. */
  async #removeDeleted(target: string, base: string, texts: Map<string, FileText>): Promise<void> {
    const { store, environment, serviceDir, tell } = this.#deps;
    const name = target.slice("relay:".length);
    const path = definitionPath(serviceDir, name);
    const file = texts.get(path);
    if (file !== undefined) {
      const read = "text" in file ? file.text : null;
      if (read === null || saidBy(read) !== base) return;
      if (this.#write.write({ path, read, value: null, keepsOld: false, target }) === undefined) return;
      texts.delete(path);
      tell(`relay ${name}: deleted in the dashboard, and ${this.#write.show(path)} with it`);
    }
    this.#notes.clear("file_behind", target);
    await store.write("dashboard", (tx) => forgetBrought(tx, environment.id, target));
  }

  async #removeAway(away: readonly string[], folder: ReadonlySet<string>): Promise<boolean> {
    const { clock, tell, serviceDir } = this.#deps;
    const now = clock.monotonicMs();
    for (const [name, { told }] of this.#away) {
      if (away.includes(name)) continue;
      this.#away.delete(name);
      if (told && !folder.has(name)) tell(`relay ${name}: its file is back`);
    }
    let removed = false;
    for (const name of away) {
      const since = this.#away.get(name) ?? { sinceMs: now, told: false };
      this.#away.set(name, since);
      const path = definitionPath(serviceDir, name);
      if (now - since.sinceMs >= PATIENCE_MS) {
        if (existsSync(path)) continue;
        this.#away.delete(name);
        this.#notes.clear("file_behind", relayTarget(name));
        const warnings = await removeRelay(this.#deps, name);
        if (warnings === null) continue;
        removed = true;
        this.#removed = true;
        tell(`relay ${name}: deleted, its file has been gone for ${PATIENCE_MS / 1000} seconds`);
        for (const { message } of warnings) tell(`relay ${name}: warning: ${message}`);
      } else if (!since.told && now - since.sinceMs >= TOLD_AFTER_MS) {
        since.told = true;
        tell(
          `relay ${name}: ${this.#write.show(path)} is gone; the relay is deleted in ${Math.ceil((PATIENCE_MS - now + since.sinceMs) / 1000)} seconds unless it comes back`,
        );
      }
    }
    return removed;
  }

  /** Without the folder this is more likely a switch of branches, or the wrong place, than a wish to delete every relay. `relays`: null: it is there. */
  #tellFolder(relays: number | null): void {
    const { clock, serviceDir, tell } = this.#deps;
    const folder = existsSync(serviceDir) ? relaysFolder(serviceDir) : serviceDir;
    if (relays === null) {
      this.#folderAwayMs = null;
      if (this.#notes.clear("folder_away", FOLDER_TARGET))
        tell(`${this.#write.show(relaysFolder(serviceDir))} is back`);
      return;
    }
    this.#folderAwayMs ??= clock.monotonicMs();
    const isTold = this.#notes.of("folder_away").has(FOLDER_TARGET);
    if (isTold || clock.monotonicMs() - this.#folderAwayMs < TOLD_AFTER_MS) return;
    const message = `${this.#write.show(folder)} is gone: its relays (${relays}) stay in force and nothing is deleted. Put it back; to delete relays, delete them in the dashboard, or make the folder again without their files.`;
    if (this.#notes.set("folder_away", FOLDER_TARGET, message)) tell(message);
  }

  #tellProblems(path: string, problems: readonly FileProblem[]): void {
    const file = this.#write.show(path);
    for (const { place, message } of problems)
      this.#deps.tell(`${file}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
    this.#deps.tell(`${file}  is not applied; what was good before stays in force.`);
  }
}

/** What a text says, written as the database writes it; null for one that is no JSON. */
function saidBy(text: string): string | null {
  try {
    return writeJson(parseJson(text.replace(/^\uFEFF/, "")));
  } catch {
    return null;
  }
}

/** A file that is gone meanwhile is older than any edit. */
export async function writtenAt(path: string): Promise<number> {
  return await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}
