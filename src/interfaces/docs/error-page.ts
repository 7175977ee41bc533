/** Documents every code, one page for each, from the registries of codes. */
import { explainCode, listCodes } from "../../base/result-code.ts";
import { writeTable } from "./markdown.ts";
import type { DocPage } from "./page.ts";

/** Lists the codes as a table. */
export function listErrors(): string {
  const rows = listCodes().map((code) => {
    const known = explainCode(code);
    return [`[\`${code}\`](/docs/errors/${code})`, String(known?.status ?? ""), known?.when ?? ""];
  });
  return writeTable(["code", "status", "when"], rows);
}

export function listErrorPages(): DocPage[] {
  return listCodes().flatMap((code) => {
    const known = explainCode(code);
    if (known === null) return [];
    const { status, when, todo } = known;
    const answered = status === null ? "" : `\n\nA caller who is refused with it is answered ${status}.`;
    return {
      id: `errors/${code}`,
      title: status === null ? code : `${code} (${status})`,
      summary: when,
      group: "Reference",
      order: 0,
      parent: "errors",
      text: `When: ${when}\n\nWhat to do: ${todo}${answered}\n\nThe same in a terminal: \`relay help ${code}\`.`,
    };
  });
}
