/** Name of a row in an object. An empty row is written into the definition with the first character of its name. */
import { useId, useRef, useState } from "preact/hooks";
import type { Json } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { Icon } from "../../component/icon.ts";
import { nodeAt, readTree, type Step } from "../../editor/json-tree.ts";
import { renameMember, setValue } from "../../editor/text-edit.ts";
import { typedIn } from "./field-frame.ts";
import { useForm } from "./form-scope.ts";

/** Returns whether an empty row follows the `count` rows, and the functions that open and close it. */
export function useEmptyRow(steps: readonly Step[], count: number) {
  const { focusNext } = useForm();
  /** Number of rows when the row opened. It is no longer empty as soon as there are more. */
  const [openAt, setOpenAt] = useState<number | null>(null);
  const open = (): void => {
    setOpenAt(count);
    focusNext(`[data-row="${steps.join(".")}.${count}"] input`);
  };
  return { isOpen: openAt === count, open, close: () => setOpenAt(null) };
}

export function AddRow({ words, onAdd }: { words: string; onAdd: () => void }): View {
  return html`<button type="button" class="form-add" onClick=${onAdd}><${Icon} name="plus" size=${14} />${words}</button>`;
}

export function RowName({
  steps,
  name,
  label,
  suggestions,
  meanings = {},
  value = "",
  onLeave,
}: {
  /** Steps to the object. */
  steps: readonly Step[];
  /** Written name; "" for an empty row. */
  name: string;
  label: string;
  suggestions: readonly string[];
  /** Meanings of suggested names. */
  meanings?: Readonly<Record<string, string>> | undefined;
  /** Value of a new row. */
  value?: Json;
  /** Called when the user leaves an empty row. */
  onLeave?: () => void;
}): View {
  const { edit } = useForm();
  const [typed, setTyped] = useState(name);
  /** Name in the newest text, which can be newer than the last render. */
  const written = useRef(name);
  const seen = useRef(name);
  const id = useId();
  if (name !== seen.current) {
    seen.current = name;
    // The name changed elsewhere: in the JSON, or because the rows moved.
    if (name !== written.current) {
      written.current = name;
      setTyped(name);
    }
  }
  const type = (event: Event): void => {
    const next = typedIn(event);
    setTyped(next);
    if (next === "") return;
    edit((text) => {
      const before = written.current;
      const edited =
        before === "" ? addMember(text, steps, next, value) : renameMember(text, [...steps, before], next);
      if (edited !== text) written.current = next;
      return edited;
    });
  };
  const leave = (): void => {
    setTyped(written.current);
    if (written.current === "") onLeave?.();
  };
  const isWrong = typed !== written.current;
  return html`<div class="form-row-name"><input aria-label=${label} class="mono" value=${typed} list=${id} autocomplete="off" spellcheck=${false} aria-invalid=${isWrong}
      placeholder=${name === "" ? "Name" : ""} onInput=${type} onBlur=${leave} />
    <datalist id=${id}>${suggestions.map((one) => html`<option key=${one} value=${one}>${meanings[one]}</option>`)}</datalist>
    ${isWrong && html`<p class="field-problem" role="alert">${typed === "" ? "Write a name." : "Another row has this name."}</p>`}</div>`;
}

function addMember(text: string, steps: readonly Step[], name: string, value: Json): string {
  const isThere = nodeAt(readTree(text), steps)?.members.some((one) => one.name === name) ?? false;
  return isThere ? text : setValue(text, [...steps, name], value);
}
