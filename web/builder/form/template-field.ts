/** Text with templates. A value of the payload is inserted at the cursor, and the filled text is shown below. */
import { useEffect, useRef } from "preact/hooks";
import { isObject, type Json, writeExact } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { SafeText } from "../../component/safe-text.ts";
import type { Step } from "../../editor/json-tree.ts";
import { setValue } from "../../editor/text-edit.ts";
import type { InsertTarget } from "../insert-target.ts";
import { FieldFrame, type FrameProps } from "./field-frame.ts";
import type { Part } from "./form-part.ts";
import { mappedValue, renderedAt, useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { pathOf, writeText } from "./part-edit.ts";

type TextInput = HTMLInputElement | HTMLTextAreaElement;

const LONG_CHARS = 1_000;
const LONG_ROWS = 5;
const MAX_ROWS = 14;
const SHOWN_CHARS = 300;

/** Returns a ref and a handler. The focused field becomes the target of the payload's values. */
export function useTarget(steps: readonly Step[], label: string, kind: InsertTarget["kind"]) {
  const { targets } = useForm();
  const input = useRef<TextInput>(null);
  const target = useRef<InsertTarget | null>(null);
  useEffect(() => () => targets.drop(target.current), []);
  const insert = (text: string): void => {
    const { current } = input;
    if (current === null) return;
    const { selectionStart, selectionEnd, value } = current;
    const [from, to] = kind === "path" ? [0, value.length] : [selectionStart ?? 0, selectionEnd ?? 0];
    current.setRangeText(text, from, to, "end");
    current.dispatchEvent(new Event("input", { bubbles: true }));
    current.focus();
  };
  const [list, index] = steps;
  const owner = list === "actions" && typeof index === "number" ? ` of action ${index + 1}` : "";
  const onFocus = (): void => {
    target.current = { label: `${label}${owner}`, kind, insert };
    targets.take(target.current);
  };
  return { ref: input, onFocus };
}

export function TemplateField({ part }: { part: Part }): View {
  const label = labelOf(pathOf(part.steps));
  return html`<${FieldFrame} part=${part}>${(frame: FrameProps) => html`<${TemplateInput} part=${part} label=${label} frame=${frame} />`}<//>`;
}

export function TemplateInput({
  part,
  label,
  frame,
}: {
  part: Part;
  label: string;
  frame: FrameProps | { "aria-label": string };
}): View {
  const { edit } = useForm();
  const target = useTarget(part.steps, label, "template");
  const text = part.node?.value ?? "";
  const least = (part.schema.maxLength ?? 0) > LONG_CHARS ? LONG_ROWS : 1;
  const rows = Math.min(MAX_ROWS, Math.max(least, text.split("\n").length));
  return html`<textarea ...${frame} ...${target} class="form-template" rows=${rows} value=${text} autocomplete="off"
      onInput=${({ target: typed }: InputEvent) => {
        const { value } = typed as HTMLTextAreaElement;
        edit((now) => (part.isRequired ? setValue(now, part.steps, value) : writeText(now, part, value)));
      }}></textarea>
    <${Filled} steps=${part.steps} text=${text} />`;
}

const TEMPLATE = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** Shows the text with its templates filled in from the request in view, and each mapped name without a value. */
function Filled({ steps, text }: { steps: readonly Step[]; text: string }): View {
  const { outcome } = useForm();
  const paths = [...text.matchAll(TEMPLATE)].map(([, path = ""]) => path);
  if (paths.length === 0) return null;
  const value = renderedAt(outcome, steps);
  const empty = paths.filter(
    (path) =>
      path.startsWith("mapped.") && mappedValue(outcome, path.slice("mapped.".length))?.found === false,
  );
  if (value === undefined && empty.length === 0) return null;
  return html`<p class="form-filled">${value !== undefined && html`<span class="form-arrow" aria-hidden="true">→</span><span class="off-screen">Value with this request: </span>${renderFilled(value)}`}
    ${empty.map((path) => html` <span key=${path} class="form-empty"><code>${path}</code> resolves to nothing</span>`)}</p>`;
}

function renderFilled(value: Json): View {
  if (value === "" || value === null) return html`<span class="form-empty">nothing</span>`;
  const text = typeof value === "string" ? value : writeExact(value, isObject(value) ? 2 : 0);
  return html`<${SafeText} text=${text} limit=${SHOWN_CHARS} />`;
}
