/** Documents each known sender on its own page, from its one file. */
import { findKit } from "../../rules/senders/kit-registry.ts";
import { kitPage } from "../../rules/senders/kit-view.ts";
import { SENDERS } from "../../rules/senders/registry.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import {
  exampleBody,
  signsEvent,
  startCatalog,
  startDefinition,
  startSteps,
} from "../../rules/senders/sender-start.ts";
import { writeTable } from "./markdown.ts";
import type { DocPage } from "./page.ts";
import { writeBlock, writeJsonBlock } from "./schema-table.ts";

export function listSenders(): string {
  const rows = SENDERS.map((sender) => [
    `[${sender.title}](/docs/senders/${sender.name})`,
    `\`${sender.verify.scheme}\``,
    signsEvent(sender) ? "yes" : "no",
    sender.summary,
  ]);
  return writeTable(["sender", "scheme", "signs its events", "events"], rows);
}

export function listSenderPages(): DocPage[] {
  return SENDERS.map((sender, order) => ({
    id: `senders/${sender.name}`,
    title: sender.title,
    summary: sender.summary,
    group: "Senders",
    order,
    parent: "senders",
    text: writeSender(sender),
  }));
}

const FROM: Readonly<Record<Sender["secret"]["from"], string>> = {
  sender: "The sender shows its own secret, and you store it here.",
  relay: "Relay generates the secret, and you paste it at the sender.",
  either: "Store the sender's secret here, or paste Relay's secret at the sender.",
};

function writeSender(sender: Sender): string {
  const { name, secret, example, eventTypes, pitfalls, personEmail, docs } = sender;
  const body = exampleBody(example);
  const isJson = "json" in example;
  const types = eventTypes.map(({ type, meaning }) => [`\`${type}\``, meaning]);
  const person =
    personEmail === null
      ? "The body has no address of a person."
      : `The address of the person is at \`${personEmail}\`: map it as \`person_email\` if actions act on the person.`;
  return [
    "## Start",
    writeBlock("sh relay", `relay init --from ${name}`),
    "The command writes the two files below. `relay dev` then receives events.",
    ...(findKit(name) === null
      ? []
      : [
          `To sell products and plans, start from the kit: [Sell with ${sender.title}](/docs/${kitPage(name)}).`,
        ]),
    "## The relay",
    writeJsonBlock("relay", startDefinition(sender)),
    signsEvent(sender)
      ? "The sender signs its events."
      : "The sender does not sign its events, so the [unsigned-event rule](/docs/definition#unsigned-events) applies.",
    person,
    "## The catalog",
    writeJsonBlock("catalog", startCatalog(sender)),
    "## Remaining steps",
    startSteps(sender)
      .map((step, index) => `${index + 1}. ${step}`)
      .join("\n"),
    FROM[secret.from],
    ...(types.length === 0 ? [] : ["## Event types", writeTable(["type", "meaning"], types)]),
    "## An example",
    isJson ? writeJsonBlock(`event ${name}`, example.json) : writeBlock("text form", body.body),
    "Send it to your own relay, signed as the sender signs:",
    writeBlock("sh relay", `relay send ${name}`),
    ...(pitfalls.length === 0 ? [] : ["## Pitfalls", pitfalls.map((one) => `- ${one}`).join("\n")]),
    `The sender's documentation: [${new URL(docs).host}](${docs}).`,
  ].join("\n\n");
}
