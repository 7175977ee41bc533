/** Frame of a field: its label, its rule, and its problems. */
import { useId } from "preact/hooks";
import { html, type View } from "../../base/html.ts";
import { DocsLink, docsOfField } from "../../component/docs-link.ts";
import { Icon } from "../../component/icon.ts";
import { SafeText } from "../../component/safe-text.ts";
import { Sentence } from "../../component/sentence.ts";
import type { JsonPart, Part } from "./form-part.ts";
import { type FormProblem, formatProblem } from "./form-problem.ts";
import { useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { pathOf } from "./part-edit.ts";

/** Attributes that connect an input with its frame. */
export interface FrameProps {
  id: string;
  "aria-describedby": string;
  "aria-invalid": boolean;
}

export function FieldFrame({
  part,
  label = labelOf(pathOf(part.steps)),
  hint = part.is === "choice" ? part.schema.description?.replace(RULE, "") : part.schema.description,
  problem = null,
  children,
}: {
  part: Part;
  label?: string;
  hint?: string | undefined;
  /** Problem of the typed text, which is not in the definition. */
  problem?: string | null;
  children: (frame: FrameProps) => View;
}): View {
  const id = useId();
  const path = pathOf(part.steps);
  const problems = useForm().problems.get(path) ?? [];
  // A problem that names the rule is enough.
  const isRuleNamed = problems.some(({ message }) => message.includes("it must be "));
  const about = isRuleNamed ? hint?.replace(RULE, "") : hint;
  const frame = {
    id,
    "aria-describedby": `${id}-about`,
    "aria-invalid": problem !== null || problems.some(isError),
  };
  return html`<div class="form-field" data-field=${path}>
    <label for=${id}>${label}${!part.isRequired && html` <span class="form-optional">optional</span>`}</label>
    ${children(frame)}
    <div id="${id}-about" class="form-about">
      ${problem !== null && html`<p class="field-problem">${problem}</p>`}
      <${Problems} problems=${problems} />
      ${about !== undefined && about !== "" && html`<p class="form-hint"><${Sentence} text=${about} /></p>`}</div>
  </div>`;
}

/** Rule at the end of a description. */
const RULE = / It must be .*$/s;

/** Meaning of a field, without the rule that its choices show anyway. */
export function Meaning({ part: { schema, steps } }: { part: Part }): View {
  if (schema.description === undefined) return null;
  const path = pathOf(steps);
  return html`<p class="form-hint"><${Sentence} text=${schema.description.replace(RULE, "")} />${path.startsWith("trigger.") && html` <${DocsLink} to=${docsOfField(path, () => null)}>More<//>`}</p>`;
}

export function typedIn(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement).value;
}

function isError({ severity = "error" }: FormProblem): boolean {
  return severity === "error";
}

const CLASSES = { error: "field-problem", warning: "field-warning", open: "field-open" } as const;

function Problems({ problems }: { problems: readonly FormProblem[] }): View {
  return html`${problems.map(
    (one) =>
      html`<p key=${one.message} class=${CLASSES[one.severity ?? "error"]}>${one.severity !== "open" && html`<${Icon} name="attention" size=${12} /> `}<${Sentence} text=${formatProblem(one)} /></p>`,
  )}`;
}

/** Problems that belong to a part with several fields. */
export function PartProblems({ part }: { part: Part }): View {
  return html`<${Problems} problems=${useForm().problems.get(pathOf(part.steps)) ?? []} />`;
}

/** Content that only the JSON can edit. */
export function EditedInJson({ part: { steps, node, name } }: { part: JsonPart }): View {
  const { onShowJson, problems } = useForm();
  const path = pathOf(steps);
  return html`<div class="form-json" data-field=${path}>
    <p><b>Edited in JSON</b> <code><${SafeText} text=${path === "" ? "definition" : name} limit=${60} /></code> <span class="quiet">The form cannot show this content and does not change it.</span></p>
    <${Problems} problems=${problems.get(path) ?? []} />
    <button type="button" onClick=${() => onShowJson({ from: node.from, to: node.to })}>Show in JSON</button></div>`;
}
