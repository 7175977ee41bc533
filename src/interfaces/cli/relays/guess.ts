/** Guesses the start of a relay from a request in a file (`relay guess`): a curl command, headers with a body, or only a body. It saves nothing. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { writeJson } from "../../../base/json.ts";
import { readPastedCall } from "../../../base/shared/pasted-request.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { RequestGuess } from "../../../insight/simulate/guess-request.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { printSheet } from "../terminal/terminal.ts";

const MAX_VALUE_CHARS = 60;

export const SECRET_STDIN: Option = {
  name: "secret-stdin",
  help: "read the sender's secret or public key from standard input, and try it",
};

export const guess: Command = {
  words: ["guess"],
  summary: "guess a relay from a request",
  details:
    "The file has a curl command, headers with a body after an empty line, or only the body. The command says who sent it, how it is signed, and what its values mean, with a reason for each. It ends with the start of a definition without actions. With the secret in RELAY_SECRET or on standard input, it says whether the request verifies. Nothing is saved.",
  arguments: [{ name: "file", help: "the file with the request, or - for standard input", of: "file" }],
  options: [SECRET_STDIN, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay guess order.txt", "relay guess - < order.txt", "relay guess order.txt --json"],
  async run(input, io) {
    const file = input.first();
    if (file === "-" && input.on("secret-stdin"))
      throw new UsageError(
        "The request and the secret both come from standard input: set RELAY_SECRET instead of --secret-stdin.",
      );
    const text = file === "-" ? await io.readInput() : await readText(resolve(io.cwd, file));
    if (text.trim() === "")
      throw new CommandFailure(
        "file_unusable",
        `${file === "-" ? "Standard input" : file} is empty: give a curl command, headers with a body, or a body.`,
      );
    const { body, headers, contentType, search } = readPastedCall(text);
    const secret = await readSecret(input, io);
    const guessed = await withApi("read", input, io, (api) =>
      guessRequest(api, { body, headers, contentType, search }, secret),
    );
    if (input.on("json")) return io.print(writeJson({ guess: guessed }, 2));
    await printSheet(input, io, writeGuess(guessed));
    io.print(`\n${writeJson(guessed.definition, 2)}`);
    io.inform(
      "\nAdd actions to the definition, then check it with relay validate or save it in the dashboard.",
    );
  },
};

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch {
    throw new CommandFailure(
      "file_unusable",
      `${file} cannot be read: give the path of a file with the request.`,
    );
  }
}

/** Reads the secret from standard input or RELAY_SECRET. Returns null without one. */
export async function readSecret(input: Input, io: Io): Promise<string | null> {
  const secret = input.on("secret-stdin") ? (await io.readInput()).trim() : (io.env.RELAY_SECRET ?? "");
  return secret === "" ? null : secret;
}

interface GuessedRequest {
  body: string;
  headers: Readonly<Record<string, string>> | null;
  contentType: string | null;
  search: string;
  url?: string;
}

export async function guessRequest(
  api: Api,
  { headers, contentType, ...request }: GuessedRequest,
  secret: string | null,
): Promise<RequestGuess> {
  const sent = {
    ...request,
    ...(headers === null ? {} : { headers }),
    ...(contentType === null ? {} : { contentType }),
    ...(secret === null ? {} : { secret }),
  };
  return (await api.request<{ guess: RequestGuess }>("POST", "/relays/guess", sent)).guess;
}

/** Formats the guesses, one line each. */
export function writeGuess({ sender, verify, eventType, eventId, person, customer }: RequestGuess): string[] {
  const found = (
    label: string,
    guessed: { path: string | null; value: string; why: string } | null,
  ): string => {
    if (guessed === null) return `  ${label}  not found`;
    const { path, value, why } = guessed;
    const where = path === null ? "" : `${plain(path)} = `;
    return `  ${label}  ${where}${shown(value)}. ${plain(why)}`;
  };
  const tried =
    { true: "It verifies. ", false: "It does not verify. ", null: "" }[String(verify.verified)] ?? "";
  return [
    sender === null ? "No known sender" : sender.title,
    ...(sender === null ? [] : [`  sender    ${sender.why}`]),
    `  verify    ${tried}${plain(verify.why)}`,
    `            ${plain(writeJson(verify.value))}`,
    found("type    ", eventType),
    found("event ID", eventId === null ? null : { ...eventId, path: eventId.path ?? null }),
    found("person  ", person),
    found("customer", customer),
  ];
}

function shown(value: string): string {
  return plain(cutToLine(value, MAX_VALUE_CHARS));
}
