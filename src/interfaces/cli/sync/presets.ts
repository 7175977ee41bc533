/**
 * Lists the senders with a known recipe (`relay presets`). For one sender it shows the recipe, the place of its secret, an example and its
 * pitfalls.
 */
import { writeJson } from "../../../base/json.ts";
import { findNearestName } from "../../../base/text.ts";
import { findKit } from "../../../rules/senders/kit-registry.ts";
import { findSender, SENDERS, searchSenders } from "../../../rules/senders/registry.ts";
import { listSender, type SenderView, viewSender } from "../../../rules/senders/sender-view.ts";
import { type Command, CommandFailure } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { programWord } from "../io.ts";
import { printList, show } from "../terminal/terminal.ts";

export const presets: Command = {
  words: ["presets"],
  summary: "list the known senders, or show one",
  details:
    "A sender's name shows its recipe, the place of its secret and an example. Any other word searches the list.",
  arguments: [
    {
      name: "name",
      help: "a sender's name, or a word to search for",
      optional: true,
      of: SENDERS.map(({ name }) => name),
    },
  ],
  options: [JSON_OUTPUT],
  examples: ["relay presets", "relay presets pay", "relay presets github", "relay presets github --json"],
  async run(input, io) {
    const word = input.first();
    const relay = programWord(io);
    const sender = findSender(word.toLowerCase());
    if (sender !== null) {
      const view = viewSender(sender);
      if (input.on("json")) return io.print(writeJson(view, 2));
      await show(input, io, writeSender(view));
      io.inform(`\nCreate a relay from this preset: ${relay} init --from ${sender.name}`);
      if (findKit(sender.name) !== null)
        io.inform(
          `Create all relays to sell with ${sender.title}: ${relay} init --from ${sender.name} --sell`,
        );
      return;
    }
    const found = searchSenders(word);
    if (found.length === 0) throw new CommandFailure("not_found", formatUnknownSender(word, relay));
    await printList(input, io, found.map(listSender), {
      columns: [
        { heading: "NAME", value: ({ name }) => name },
        { heading: "SENDER", value: ({ title }) => title },
        { heading: "EVENTS", value: ({ summary }) => summary },
      ],
      none: "",
    });
    if (!input.on("json"))
      io.inform(
        `\nShow a preset with ${relay} presets <name>. Create a relay from it with ${relay} init --from <name>. For another sender, write the recipe; ${relay} schema shows the fields.`,
      );
  },
};

/** Formats the error for an unknown sender. */
export function formatUnknownSender(word: string, relay: string): string {
  const names = SENDERS.map(({ name }) => name);
  const near = findNearestName(word.toLowerCase(), names);
  const hint = near === null ? `${relay} presets lists them` : `did you mean ${near}?`;
  return `There is no known sender ${JSON.stringify(word)}: ${hint}.`.replace("?.", "?");
}

function writeSender(sender: SenderView): string {
  const { title, summary, secret, register, docs, definition, example, eventTypes, pitfalls } = sender;
  const width = Math.max(...eventTypes.map(({ type }) => type.length));
  return [
    `${title}: ${summary}`,
    "",
    `Receiver URL   ${register}`,
    `Secret         ${secret.where}`,
    `Documentation  ${docs}`,
    "",
    "First relay:",
    writeJson(definition, 2),
    "",
    `Example event (${example.contentType}):`,
    pretty(example.body),
    "",
    "Event types:",
    ...eventTypes.map(({ type, meaning }) => `  ${type.padEnd(width)}  ${meaning}`),
    "",
    "Pitfalls:",
    ...pitfalls.map((pitfall) => `  - ${pitfall}`),
  ].join("\n");
}

/** Formats a body: JSON with indentation, or a form with one field per line. */
function pretty(body: string): string {
  if (/^[[{]/.test(body)) return writeJson(JSON.parse(body), 2);
  return [...new URLSearchParams(body)].map(([name, value]) => `${name}=${value}`).join("\n");
}
