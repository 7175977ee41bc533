/** Shows the documentation in a terminal (`relay docs`), with the same pages as /docs of the service. It needs no running service. */

import { writeJson } from "../../base/json.ts";
import { pathOf } from "../docs/link.ts";
import type { DocPage } from "../docs/page.ts";
import { toPlainText } from "../docs/plain-text.ts";
import type { Hit } from "../docs/search.ts";
import { type Command, CommandFailure } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { programWord } from "./io.ts";
import { show } from "./terminal/terminal.ts";

const SHOWN_HITS = 12;

export const docs: Command = {
  words: ["docs"],
  summary: "read or search the documentation",
  details: "A page's name prints the page. Other words print the sections that contain all of them.",
  arguments: [{ name: "words", help: "a page's name, or words to search for", optional: true, many: true }],
  options: [JSON_OUTPUT],
  examples: ["relay docs", "relay docs first-hour", "relay docs rotate secret"],
  async run(input, io) {
    const manual = await io.readManual();
    const asked = input.positionals.join(" ").trim();
    const relay = programWord(io);
    const page = manual.find(asked.replace(/^\/?docs\//, ""));
    const json = input.on("json");
    if (page !== null) return json ? io.print(writeJson(page, 2)) : await show(input, io, writePage(page));
    if (asked === "") {
      const top = manual.pages.filter(({ parent }) => parent === undefined);
      if (json) io.print(writeJson({ pages: top.map(listed) }, 2));
      else await show(input, io, writeList(top));
      return io.inform(
        `\n${relay} docs <page> prints a page, and ${relay} docs <words> searches. A running service shows the pages at /docs.`,
      );
    }
    const hits = manual.search(asked);
    if (hits.length === 0)
      throw new CommandFailure(
        "not_found",
        `No page contains all words of ${JSON.stringify(asked)}: search for fewer words. ${relay} docs lists all pages.`,
      );
    if (json) io.print(writeJson({ sections: hits.map(found) }, 2));
    else await show(input, io, writeHits(hits));
  },
};

function listed({ id, title, summary, group }: DocPage) {
  return { id, title, summary, group };
}

function found({ page, section, excerpt }: Hit) {
  return { page: page.id, section: section.title, path: pathOf(page.id, section.anchor), excerpt };
}

function writePage({ title, summary, text }: DocPage): string {
  return `${title}\n${"=".repeat(title.length)}\n\n${summary}\n\n${toPlainText(text)}`;
}

function writeList(pages: readonly DocPage[]): string {
  const width = Math.max(...pages.map(({ id }) => id.length));
  return [...new Set(pages.map(({ group }) => group))]
    .map((group) => {
      const own = pages.filter((page) => page.group === group);
      return `${group}\n${own.map(({ id, summary }) => `  ${id.padEnd(width)}  ${summary}`).join("\n")}`;
    })
    .join("\n\n");
}

function writeHits(hits: readonly Hit[]): string {
  return hits
    .slice(0, SHOWN_HITS)
    .map(({ page, section, excerpt }) => {
      const where = section.anchor === "" ? "" : `  ${section.title}`;
      return `${page.id}${where}\n  ${excerpt}`;
    })
    .join("\n\n");
}
