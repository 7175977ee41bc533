/** Where `relay send` posts to, and as whom: the relay's receiver trigger, its URL, and the secret to sign with. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findRelay } from "../relay/relay.ts";
import { readLocalSecrets, SECRETS_FILE } from "../secret/local-file.ts";
import { definitionPath, readDefinitionFile } from "../sync/definition-file.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import type { Trigger } from "../trigger/registry.ts";
import { CommandFailure, type Input } from "./command.ts";
import { chooseEnvironment, readRunningUrl, withStore } from "./data-directory.ts";
import { readBaseUrl, readDataDir, readServiceDir } from "./service-option.ts";
import type { World } from "./world.ts";

export interface SendTarget {
  trigger: ReceiverTrigger;
  url: string;
  /** The receiver secret, or the sender's private key. */
  secret: string;
  /** Where the relay was found in the data directory; null: it was not. */
  environmentId: number | null;
}

/** Fails with a sentence where one of them is not to be found. */
export async function findSendTarget(name: string, input: Input, world: World): Promise<SendTarget> {
  const stored = await findStored(name, input, world);
  const trigger = stored?.trigger ?? (await readFileTrigger(name, input, world));
  if (trigger.kind !== "receiver") {
    throw new CommandFailure(
      "invalid_input",
      `The relay ${name} waits for a ${trigger.kind}, not for a call: there is nothing to send.`,
    );
  }
  return {
    trigger,
    url: chooseUrl(name, stored?.appId ?? input.text("app"), input, world),
    secret: await readSecret(name, input, world),
    environmentId: stored?.environmentId ?? null,
  };
}

/** The relay as the data directory holds it: what the service verifies against. */
async function findStored(name: string, input: Input, world: World) {
  if (!existsSync(join(readDataDir(input, world), "relay.db"))) return null;
  return await withStore(input, world, (store) =>
    store.read(async (tx) => {
      const environment = await chooseEnvironment(tx, input);
      const row = await findRelay(tx, environment.id, name);
      if (row === null) return null;
      return {
        trigger: row.definition.trigger,
        appId: environment.appId,
        environmentId: environment.id,
      };
    }),
  );
}

async function readFileTrigger(name: string, input: Input, world: World): Promise<Trigger> {
  const path = definitionPath(readServiceDir(input, world), name);
  if (!existsSync(path)) {
    throw new CommandFailure(
      "not_found",
      `There is no relay ${name}, neither stored nor at ${path}: check the name.`,
    );
  }
  const file = await readDefinitionFile(path);
  if (file.ok) return file.definition.trigger;
  throw new CommandFailure("invalid_definition", `${path} is broken: relay validate shows where.`);
}

function chooseUrl(name: string, appId: string | null, input: Input, world: World): string {
  const given = input.text("url");
  if (given !== null) return given;
  const baseUrl = readBaseUrl(input) ?? readRunningUrl(readDataDir(input, world));
  if (baseUrl === null) {
    throw new CommandFailure(
      "service_not_running",
      "No service runs here: start one with relay dev, or name the receiver URL with --url.",
    );
  }
  if (appId === null)
    throw new CommandFailure(
      "invalid_input",
      "The app is not known: name it with --app, or give the whole --url.",
    );
  return `${baseUrl}/hooks/${appId}/${name}`;
}

async function readSecret(name: string, input: Input, world: World): Promise<string> {
  if (input.on("secret-stdin")) return (await world.readInput()).trim();
  const given = world.env.RELAY_SECRET;
  if (given !== undefined && given !== "") return given;
  const serviceDir = readServiceDir(input, world);
  const local = (await readLocalSecrets(serviceDir)).get(name)?.receiverSecret;
  if (local !== undefined) return local;
  throw new CommandFailure(
    "invalid_input",
    `The secret of ${name} is not in ${join(serviceDir, SECRETS_FILE)}: give it by RELAY_SECRET, or with --secret-stdin.`,
  );
}
