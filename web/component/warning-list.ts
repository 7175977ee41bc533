/** Shows each warning of a save or a check as a notice. */
import type { Warning } from "../../src/base/refusal.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "./notice.ts";
import { CommandLine, Sentence } from "./sentence.ts";

export function WarningList({ warnings }: { warnings: readonly Warning[] }): View {
  return html`${warnings.map(({ message }, at) => html`<${Notice} key=${at} kind="warn"><${Sentence} text=${message} /> <${CommandLine} texts=${[message]} /><//>`)}`;
}
