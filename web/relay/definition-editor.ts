/**
 * A plain text area for a definition: as high as its text, with line numbers, the lines of problems marked, and Enter keeping the indent.
 * Tab moves on, as everywhere; Ctrl or Cmd with S saves.
 */
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Problem } from "../../src/ground/refusal.ts";
import { html, type View } from "../ground/html.ts";
import { type PlacedProblem, ProblemList } from "../part/problem-list.ts";
import { findJsonProblem, placeProblems } from "./definition-text.ts";

export function DefinitionEditor({
  text,
  onText,
  problems,
  onSave,
  label = "Definition as JSON",
}: {
  text: string;
  onText: (text: string) => void;
  /** Of the text as it was when they were found. */
  problems: readonly Problem[];
  onSave: () => void;
  label?: string;
}): View {
  const area = useRef<HTMLTextAreaElement>(null);
  const jsonProblem = useMemo(() => findJsonProblem(text), [text]);
  const placed = useMemo(
    () => (jsonProblem === null ? placeProblems(text, problems) : [jsonProblem]),
    [text, problems, jsonProblem],
  );
  const lines = text.split("\n").length;
  const marked = new Set(placed.map(({ line }) => line));
  const go = (problem: PlacedProblem): void => {
    const offset = placed.find((one) => one === problem)?.offset ?? 0;
    const end = text.indexOf("\n", offset);
    area.current?.focus();
    area.current?.setSelectionRange(offset, end === -1 ? text.length : end);
  };
  const edit = (value: string, caret: number): void => {
    onText(value);
    caretAfter.current = caret;
  };
  const caretAfter = useRef<number | null>(null);
  useEffect(() => {
    if (caretAfter.current === null) return;
    area.current?.setSelectionRange(caretAfter.current, caretAfter.current);
    caretAfter.current = null;
  }, [text]);
  const onKey = (event: KeyboardEvent): void => {
    const target = event.target as HTMLTextAreaElement;
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      onSave();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      const before = target.value.slice(0, target.selectionStart);
      const line = before.slice(before.lastIndexOf("\n") + 1);
      const indent = `\n${/^ */.exec(line)?.[0] ?? ""}${/[{[]\s*$/.test(line) ? "  " : ""}`;
      edit(before + indent + target.value.slice(target.selectionEnd), before.length + indent.length);
    }
  };
  return html`<div class="editor">
      <div class="editor-lines" aria-hidden="true">
        ${Array.from(
          { length: lines },
          (_, at) => html`<span key=${at} class=${marked.has(at + 1) ? "marked" : ""}>
        ${at + 1}</span>`,
        )}</div>
      <textarea ref=${area} aria-label=${label} aria-invalid=${placed.length > 0} rows=${lines} spellcheck=${false} autocomplete="off" autocapitalize="off" wrap="off"
        value=${text} onInput=${(event: InputEvent) => onText((event.target as HTMLTextAreaElement).value)} onKeyDown=${onKey}>
          </textarea>
    </div>
    <${ProblemList} problems=${placed} onGo=${go} />`;
}
