/** Documents every code, one page for each, from the registries of codes. */
import { formatKinds, listCodes, listMeanings, listParts, type Meaning } from "../../base/code/code.ts";
import { writeTable } from "./markdown.ts";
import type { DocPage } from "./page.ts";

/** Lists the codes as a table, with a row for each meaning. */
export function listErrors(): string {
  const rows = listCodes().flatMap((code) =>
    listMeanings(code).map(({ kinds, status, what }) => [
      `[\`${code}\`](/docs/errors/${code})`,
      kinds.join(", "),
      String(status ?? ""),
      what,
    ]),
  );
  return writeTable(["code", "kind", "status", "what happened"], rows);
}

export function listErrorPages(): DocPage[] {
  return listCodes().flatMap((code) => {
    const meanings = listMeanings(code);
    const [first] = meanings;
    if (first === undefined) return [];
    const { status, what } = first;
    return {
      id: `errors/${code}`,
      title: status === null ? code : `${code} (${status})`,
      summary: what,
      group: "Reference",
      order: 0,
      parent: "errors",
      text: `${meanings.map(writeMeaning).join("\n\n")}\n\nThe same in a terminal: \`relay help ${code}\`.`,
    };
  });
}

function writeMeaning(meaning: Meaning): string {
  const parts = [{ label: "Kind", text: `${formatKinds(meaning)}.` }, ...listParts(meaning)];
  return parts.map(({ label, text }) => `**${label}:** ${text}`).join("\n\n");
}
