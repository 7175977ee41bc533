/**
 * Form of a definition. It shows the text as fields and changes only the text: it keeps no copy of the definition. A text
 * that is not JSON leaves the last form visible, without input.
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Simulation } from "../../../src/insight/simulate/step.ts";
import { html, type View } from "../../base/html.ts";
import type { Place } from "../../base/place.ts";
import { Notice, Skeleton } from "../../component/notice.ts";
import type { PlacedProblem } from "../../component/problem-list.ts";
import { childOf, readTree } from "../../editor/json-tree.ts";
import type { Known } from "../../editor/schema.ts";
import type { InsertTarget } from "../insert-target.ts";
import { useStyle } from "../style.ts";
import { ActionList } from "./action-list.ts";
import { EditedInJson } from "./field-frame.ts";
import css from "./form.css" with { type: "text" };
import { type Part, readForm } from "./form-part.ts";
import { openFields, placeProblems } from "./form-problem.ts";
import { FormContext, type FormScope } from "./form-scope.ts";
import { PartField } from "./group-fields.ts";
import { type Occurrences, TriggerCard } from "./trigger-card.ts";

interface Props {
  place: Place;
  text: string;
  onText: (next: string) => void;
  /** Name of the saved relay; null: it is new. */
  saved: string | null;
  /** null while the schema is loading. */
  known: Omit<Known, "root"> | null;
  /** Problems and warnings of the text. */
  placed: readonly PlacedProblem[];
  /** The newest outcome; null: none yet. */
  outcome: Simulation | null;
  checked: (Occurrences & Pick<FormScope, "sender">) | null;
  /** Reports the field into which a value of the payload can be inserted. */
  onTarget: (target: InsertTarget | null) => void;
  onShowJson: (range: { from: number; to: number }) => void;
  /** False: the user did not try to create the relay yet, so an empty field is no mistake. */
  isTried?: boolean;
}

export function DefinitionForm({ known, ...props }: Props): View {
  useStyle(css);
  if (known === null) return html`<${Skeleton} />`;
  return html`<${LoadedForm} known=${known} ...${props} />`;
}

function LoadedForm({
  place,
  text,
  onText,
  saved,
  known,
  placed,
  outcome,
  checked,
  onTarget,
  onShowJson,
  isTried = true,
}: Props & { known: Omit<Known, "root"> }): View {
  const edit = useEdit(text, onText);
  const { host, focusNext } = useFocusNext();
  const [status, setStatus] = useState("");
  const read = useMemo(() => readForm(known.schema, text), [known.schema, text]);
  /** The newest text that was JSON. */
  const last = useRef({ text, form: read });
  if (read !== null) last.current = { text, form: read };
  const { form, text: shownText } = last.current;
  const root = useMemo(() => readTree(shownText), [shownText]);
  const problems = useMemo(
    () => placeProblems(form, read === null ? [] : isTried ? placed : openFields(placed)),
    [form, read, placed, isTried],
  );
  const isJson = read !== null;
  const scope: FormScope = {
    place,
    known: { ...known, root },
    relay: root === null ? "" : (childOf(root, "name")?.value ?? ""),
    saved,
    edit,
    focusNext,
    announce: setStatus,
    problems,
    outcome: isJson ? outcome : null,
    sender: checked?.sender,
    targets: useTargets(onTarget),
    onShowJson,
  };
  const shown = form === null ? [] : form.is === "group" ? [...form.fields, ...form.others] : [form];
  return html`<${FormContext.Provider} value=${scope}><div ref=${host} class="definition-form">
    ${!isJson && html`<${Notice} kind="warn">The JSON has an error, so the form cannot change it. Fix the JSON, and the form continues.<//>`}
    <fieldset class="form-all ${isJson ? "" : "form-old"}" disabled=${!isJson} aria-label="Form of the definition">
      ${problems.get("")?.map(({ message }) => html`<${Notice} key=${message} kind="bad">${message}<//>`)}
      ${shown.map((part) => html`<${TopPart} key=${`${part.is === "json"} ${part.name}`} part=${part} text=${shownText} checked=${isJson ? checked : null} />`)}
    </fieldset>
    <p class="off-screen" role="status">${status}</p>
  </div><//>`;
}

function TopPart({ part, text, checked }: { part: Part; text: string; checked: Occurrences | null }): View {
  if (part.is === "json" && part.name !== "trigger") return html`<${EditedInJson} part=${part} />`;
  if (part.name === "trigger") return html`<${TriggerCard} part=${part} checked=${checked} />`;
  if (part.is === "list") return html`<${ActionList} part=${part} text=${text} />`;
  return html`<div class="card form-card"><${PartField} part=${part} /></div>`;
}

/**
 * Returns a function that changes the newest text. A text that the form reported comes back after the next render, when
 * the form may have a newer one. Only a text from elsewhere replaces it.
 */
function useEdit(text: string, onText: (next: string) => void): FormScope["edit"] {
  const newest = useRef(text);
  const reported = useRef<string[]>([]);
  const seen = useRef(text);
  if (seen.current !== text) {
    seen.current = text;
    const at = reported.current.indexOf(text);
    reported.current.splice(0, at < 0 ? reported.current.length : at + 1);
    if (at < 0) newest.current = text;
  }
  return (change) => {
    const next = change(newest.current);
    if (next === newest.current) return;
    newest.current = next;
    reported.current.push(next);
    onText(next);
  };
}

function useTargets(onTarget: Props["onTarget"]): FormScope["targets"] {
  const current = useRef<InsertTarget | null>(null);
  return {
    take: (target) => {
      current.current = target;
      onTarget(target);
    },
    drop: (target) => {
      if (target === null || target !== current.current) return;
      current.current = null;
      onTarget(null);
    },
  };
}

/** Moves the focus after the render that an edit causes. */
function useFocusNext() {
  const host = useRef<HTMLDivElement>(null);
  const wanted = useRef<string | null>(null);
  const [, draw] = useState(0);
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const found = host.current?.querySelector<HTMLElement>(wanted.current);
    if (found == null) return;
    wanted.current = null;
    found.focus();
  });
  const focusNext = (selector: string): void => {
    wanted.current = selector;
    draw((count) => count + 1);
  };
  return { host, focusNext };
}
