/** Prints code that verifies the calls of call_url on the called server (`relay verifiers`). */
import { writeJson } from "../../../base/json.ts";
import { NOTICE_VERIFIERS } from "../../../rules/action/notice-verifier.ts";
import { type Command, CommandFailure } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { programWord } from "../io.ts";
import { printList } from "../terminal/terminal.ts";

const LANGUAGES = NOTICE_VERIFIERS.map(({ language }) => language);

export const verifiers: Command = {
  words: ["verifiers"],
  summary: "print code that verifies calls",
  details:
    "Your server runs the code for each request that call_url sends. It checks the signature over the exact bytes of the body, and that the request is at most five minutes old. It needs only the standard library of the language.",
  arguments: [{ name: "language", help: "the language of your server", optional: true, of: LANGUAGES }],
  options: [JSON_OUTPUT],
  examples: ["relay verifiers", "relay verifiers python"],
  async run(input, io) {
    const wanted = input.first().toLowerCase();
    if (wanted === "") {
      await printList(input, io, NOTICE_VERIFIERS, {
        columns: [
          { heading: "LANGUAGE", value: ({ language }) => language },
          { heading: "FILE", value: ({ file }) => file },
        ],
        none: "",
      });
      if (!input.on("json")) io.inform(`\nPrint the code: ${programWord(io)} verifiers <language>`);
      return;
    }
    const found = NOTICE_VERIFIERS.find(({ language }) => language === wanted);
    if (found === undefined)
      throw new CommandFailure(
        "not_found",
        `There is no code in ${JSON.stringify(wanted)}: choose one of ${LANGUAGES.join(", ")}.`,
      );
    io.print(input.on("json") ? writeJson({ ...found }, 2) : found.code.trimEnd());
  },
};
