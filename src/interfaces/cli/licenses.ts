/** Shows the packages in the executable, with the text of each license (`relay licenses`). */
import type { Command } from "./command.ts";
import { show } from "./terminal/terminal.ts";

export const licenses: Command = {
  words: ["licenses"],
  summary: "show the licenses of the included packages",
  details:
    "The command lists the packages in this program with their versions, then the text of each license.",
  options: [],
  examples: ["relay licenses"],
  async run(input, io) {
    // Only this command needs the page: from the sources, loading it reads every package.
    const { LICENSE_PAGE } = await import("./license-page.ts");
    await show(input, io, LICENSE_PAGE.trimEnd());
  },
};
