/**
 * Keeps the local secrets file and the stored secrets the same. It writes generated secrets to the file, and pastes a value that a person
 * wrote into the file. It writes no secret that was pasted elsewhere, and prints none.
 */
import { join } from "node:path";
import { Refusal } from "../../base/refusal.ts";
import {
  type LocalSecrets,
  readLocalSecrets,
  SECRETS_FILE,
  setLocalSecrets,
} from "../../platform/secret/local-secrets.ts";
import {
  listRelayRows,
  type RelayRow,
  receiverSecretContext,
  signingSecretContext,
} from "../../rules/relay/relay.ts";
import { prepareSecret, readSecretSlot, storeSecret } from "../../rules/relay/secret-rotation.ts";
import { readModifiedMs } from "./json-file.ts";
import { type ApplyDeps, makeSaveContext } from "./local-apply.ts";

/** The folder of local development's files, and the output for the person at the terminal. */
export interface LocalDeps extends ApplyDeps {
  serviceDir: string;
  /** Prints one line for the person at the terminal. */
  print: (line: string) => void;
  /** Runs the cases of these relays without effect. Returns a sentence for each relay that has cases with another result than before. */
  findChangedCases: (relayNames: readonly string[]) => Promise<{ relay: string; message: string }[]>;
}

export class LocalSecretFile {
  readonly #deps: LocalDeps;
  /** The receiver secret of each relay in the file at the last run. */
  readonly #seen = new Map<string, string>();
  #lastRefusal = "";

  constructor(deps: LocalDeps) {
    this.#deps = deps;
  }

  /** Returns the file's secrets for a relay that is about to be created. */
  async read(name: string): Promise<LocalSecrets> {
    return (await this.#readAll()).get(name) ?? {};
  }

  /** Updates both sides. */
  async reconcile(): Promise<void> {
    const { store, environment, serviceDir } = this.#deps;
    const [rows, held, writtenMs] = await Promise.all([
      store.read((tx) => listRelayRows(tx, environment.id)),
      this.#readAll(),
      readModifiedMs(join(serviceDir, SECRETS_FILE)),
    ]);
    for (const row of rows) {
      const entry = held.get(row.name) ?? {};
      const pasted = await this.#pasteIfChanged(row, entry.receiverSecret, writtenMs);
      if (!pasted) await this.#writeMinted(row, entry);
    }
    for (const [name, { receiverSecret }] of await this.#readAll()) {
      if (receiverSecret !== undefined) this.#seen.set(name, receiverSecret);
    }
  }

  /** Pastes the file's value if a person wrote it since the last run. */
  async #pasteIfChanged(row: RelayRow, value: string | undefined, writtenMs: number): Promise<boolean> {
    if (value === undefined || row.secretKind === "processor") return false;
    const seen = this.#seen.get(row.name);
    const isNew = seen === undefined ? writtenMs > (row.secretSetAt ?? 0) : seen !== value;
    if (!isNew || this.#unseal(row.secret, receiverSecretContext(row.id)) === value) return false;
    try {
      await this.#paste(row.name, value);
      this.#deps.print(`relay ${row.name}: now verifies with the secret in ${SECRETS_FILE}`);
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#printOnce(`relay ${row.name}: the secret in ${SECRETS_FILE} is not used: ${error.message}`);
      return false;
    }
  }

  async #paste(name: string, value: string): Promise<void> {
    const { store, environment, sealer } = this.#deps;
    const context = makeSaveContext(this.#deps);
    const slot = await store.read((tx) => readSecretSlot(tx, environment.id, name));
    const prepared = prepareSecret(slot, value, sealer, context.nowMs);
    await store.write("dashboard", (tx) => storeSecret(tx, context, prepared));
  }

  /** Writes generated secrets that the file does not have. */
  async #writeMinted(row: RelayRow, entry: LocalSecrets): Promise<void> {
    const made: LocalSecrets = {};
    const receiver =
      row.secretKind === "minted" ? this.#unseal(row.secret, receiverSecretContext(row.id)) : null;
    if (receiver !== null && receiver !== entry.receiverSecret) made.receiverSecret = receiver;
    const signing = this.#unseal(row.signingSecret, signingSecretContext(row.id));
    if (signing !== null && signing !== entry.signingSecret) made.signingSecret = signing;
    const words = [
      ...(made.receiverSecret === undefined ? [] : ["receiver secret"]),
      ...(made.signingSecret === undefined ? [] : ["signing secret"]),
    ];
    if (words.length === 0) return;
    await setLocalSecrets(this.#deps.serviceDir, row.name, made);
    this.#deps.print(
      `relay ${row.name}: its ${words.join(" and ")} ${words.length > 1 ? "are" : "is"} in ${SECRETS_FILE}`,
    );
  }

  #unseal(sealed: Uint8Array | null, context: string): string | null {
    return sealed === null ? null : this.#deps.sealer.unseal(sealed, context);
  }

  async #readAll(): Promise<Map<string, LocalSecrets>> {
    try {
      return await readLocalSecrets(this.#deps.serviceDir);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#printOnce(error.message);
      throw new SecretFileUnreadable(error.message);
    }
  }

  #printOnce(line: string): void {
    if (line !== this.#lastRefusal) this.#deps.print(line);
    this.#lastRefusal = line;
  }
}

/** The file exists and cannot be read, which was printed. Nothing is written over it. */
export class SecretFileUnreadable extends Error {}
