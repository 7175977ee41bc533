/** `relay domain …`: the domain that an environment's mail is sent from: shown with its DNS record, set, and verified. */
import { actorWords, COMMAND_LINE } from "../account/api-key.ts";
import { type Json, writeJson } from "../ground/json.ts";
import {
  findSenderDomain,
  resolveTxt,
  saveSenderDomain,
  verifySenderDomain,
  viewSenderDomain,
} from "../mail/sender-domain.ts";
import type { Command, Input } from "./command.ts";
import { JSON_OUTPUT, OF_ENVIRONMENT, withEnvironment } from "./data-directory.ts";
import type { World } from "./world.ts";

const OPTIONS = [JSON_OUTPUT, ...OF_ENVIRONMENT];

export const domainShow: Command = {
  words: ["domain", "show"],
  summary: "the domain that mail is sent from, and the DNS record that verifies it",
  options: OPTIONS,
  async run(input, world) {
    const row = await withEnvironment(input, world, (store, { id }) =>
      store.read((tx) => findSenderDomain(tx, id)),
    );
    if (row !== null) return say(input, world, viewSenderDomain(row));
    if (input.on("json")) world.say(writeJson({ senderDomain: null }, 2));
    world.tell("No sender domain is set: relay domain set <domain> sets one.");
  },
};

export const domainSet: Command = {
  words: ["domain", "set"],
  summary: "set the domain that mail is sent from; another one starts unverified",
  arguments: [{ name: "domain", help: "such as example.com" }],
  options: OPTIONS,
  async run(input, world) {
    const [by, nowMs] = [actorWords(COMMAND_LINE), world.clock.now()];
    const row = await withEnvironment(input, world, (store, { id: environmentId }) =>
      store.write("dashboard", (tx) =>
        saveSenderDomain(tx, { environmentId, by, nowMs }, { domain: input.first() }),
      ),
    );
    say(input, world, viewSenderDomain(row));
    if (row.verifiedAt === null) world.tell("Make this DNS record, then run relay domain verify.");
  },
};

export const domainVerify: Command = {
  words: ["domain", "verify"],
  summary: "look the sender domain's DNS record up now",
  options: OPTIONS,
  async run(input, world) {
    const by = actorWords(COMMAND_LINE);
    const { domain, message } = await withEnvironment(input, world, (store, { id: environmentId }) =>
      verifySenderDomain(store, { resolveTxt, clock: world.clock }, { environmentId, by }),
    );
    say(input, world, viewSenderDomain(domain));
    world.tell(message);
    return domain.verifiedAt === null ? 1 : 0;
  },
};

function say(input: Input, world: World, view: ReturnType<typeof viewSenderDomain>): void {
  if (input.on("json")) {
    world.say(writeJson({ senderDomain: view } as Json, 2));
    return;
  }
  const { domain, verified, record } = view;
  world.say(
    `${domain}  ${verified ? "verified" : "not verified"}\n  ${record.type}  ${record.name}  ${record.value}`,
  );
}
