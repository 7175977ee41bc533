/**
 * Files and removes store account tokens (`relay people add-token`, `remove-token`), as the person's page in the dashboard does. An app
 * store's purchase finds its person by such a token. The command reads an absent token from stdin, so the shell history does not contain
 * it.
 */

import { writeJson } from "../../../base/json.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { findPerson, PERSON } from "./people.ts";

const ARGUMENTS = [
  PERSON,
  { name: "token", help: "as the app store sends it; if absent, read from standard input", optional: true },
];
const OPTIONS = [JSON_OUTPUT, ...ANYWHERE];

interface Filed {
  person: string;
  token: { token: string; createdAt: string };
  /** False if the person had this token before. */
  filed: boolean;
}

export const peopleAddToken: Command = {
  words: ["people", "add-token"],
  aliases: [["people", "file-token"]],
  summary: "add a store account token to a person",
  details:
    "An event of an app store finds its person by this token, if the relay maps person_token. A token belongs to one person and never moves to another one by itself. Standard input keeps the token out of the shell's history.",
  arguments: ARGUMENTS,
  options: OPTIONS,
  examples: [
    "relay people add-token ada@example.com 8f14e45f-ceea-467f-9a2c-1d5d5b0f9f6a",
    "relay people add-token ada@example.com < token.txt",
  ],
  async run(input, io) {
    const [name, token] = [input.first(), await readToken(input, io, "add-token")];
    const made = await withApi<Filed>("write", input, io, async (api) => {
      const { id: person } = await findPerson(api, name);
      const of = `/persons/${encodeURIComponent(person)}`;
      type Now = { tokens: { token: string }[] };
      const { tokens } = await api.request<Now>("GET", of);
      const filed = !tokens.some((one) => one.token === token);
      const made = await api.request<Pick<Filed, "token">>("PUT", `${of}/tokens`, { token });
      return { person, ...made, filed };
    });
    if (input.on("json")) io.print(writeJson(made, 2));
    io.inform(
      made.filed
        ? `The token is added to ${name}. An event with this token now finds them.`
        : `Nothing changed: ${name} already has this token.`,
    );
  },
};

export const peopleRemoveToken: Command = {
  words: ["people", "remove-token"],
  summary: "remove a store account token from a person",
  details:
    "An event with this token then finds no person. The person keeps what was bought with it. relay people show lists their tokens.",
  arguments: ARGUMENTS,
  options: OPTIONS,
  examples: ["relay people remove-token ada@example.com 8f14e45f-ceea-467f-9a2c-1d5d5b0f9f6a"],
  async run(input, io) {
    const [name, token] = [input.first(), await readToken(input, io, "remove-token")];
    const person = await withApi<string>("write", input, io, async (api) => {
      const { id } = await findPerson(api, name);
      await api.command("POST", `/persons/${encodeURIComponent(id)}/tokens/remove`, { token });
      return id;
    });
    if (input.on("json")) io.print(writeJson({ person, removed: true }, 2));
    io.inform(
      `The token is removed from ${name}. An event with this token now finds no person. They keep what was bought with it.`,
    );
  },
};

async function readToken(input: Input, io: Io, word: string): Promise<string> {
  const written = input.positionals[1];
  if (written === undefined && io.interactive) io.inform("Paste the token, then press Enter and Ctrl-D.");
  const token = (written ?? (await io.readInput())).trim();
  if (token !== "") return token;
  throw new UsageError(
    `<token> is missing and standard input was empty: write the token after the person, or run relay people ${word} ${input.first()} < file.`,
  );
}
