/** Shows each warning of a save or a check as a notice. */
import type { Warning } from "../../src/base/refusal.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { Notice } from "./notice.ts";
import { CommandLine, Sentence } from "./sentence.ts";

/** `place`: the environment that the warnings are about, if it is not the current one. */
export function WarningList({ warnings, place }: { warnings: readonly Warning[]; place?: Place }): View {
  return html`${warnings.map(({ message }, at) => html`<${Notice} key=${at} kind="warn"><${Sentence} text=${message} place=${place} /> <${CommandLine} texts=${[message]} /><//>`)}`;
}
