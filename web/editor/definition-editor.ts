/**
 * Editor of a definition with completions and with problems at their lines. A text area replaces it while it loads and
 * if it cannot load. Both wrap lines alike, so that nothing below moves.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Warning } from "../../src/base/refusal.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { DocsLink, docsOfField } from "../component/docs-link.ts";
import { type PlacedProblem, ProblemList } from "../component/problem-list.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";
import type { CodeEditor } from "./code-editor.ts";
import type { PlaceWords } from "./place-words.ts";
import type { DefinitionCheck, Placed } from "./use-definition-check.ts";

const KEYS =
  "Tab indents. Esc, then Tab, leaves the editor. Ctrl Space suggests values, Ctrl F searches, F8 goes to the next problem, Ctrl S saves.";

export function DefinitionEditor({
  text,
  onText,
  check: { known, checked, placed },
  warned = [],
  jump = null,
  onSave,
  label = "Definition as JSON",
}: {
  text: string;
  onText: (text: string) => void;
  check: DefinitionCheck;
  /** Warnings of the last save. They appear here unless the live check reports them too. */
  warned?: readonly Warning[];
  /** Range to select and to focus. Each new object selects again. */
  jump?: { from: number; to: number } | null;
  onSave: () => void;
  label?: string;
}): View {
  const [words, setWords] = useState<PlaceWords | null>(null);
  const host = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  // The editor's callbacks always use the values of the latest render.
  const now = useRef({ text, onText, onSave, known, placed });
  now.current = { text, onText, onSave, known, placed };
  const editor = useRef<CodeEditor | null>(null);
  const reported = useRef<string[]>([]);
  const [state, setState] = useState<"loading" | "ready" | "failed">("loading");

  useEffect(() => {
    let isUnmounted = false;
    const start = async (): Promise<void> => {
      const { mountEditor } = await import("./code-editor.ts");
      const { current } = host;
      if (isUnmounted || current === null) return;
      const shadow = current.shadowRoot ?? current.attachShadow({ mode: "open" });
      const { activeElement } = document;
      const caret = area.current !== null && activeElement === area.current ? area.current : null;
      const [from, to] = caret === null ? [0, 0] : [caret.selectionStart, caret.selectionEnd];
      editor.current = mountEditor({
        shadow,
        text: now.current.text,
        label,
        hint: KEYS,
        onText: (next) => {
          reported.current.push(next);
          now.current.onText(next);
        },
        onSave: () => now.current.onSave(),
        onPlace: setWords,
        know: () => now.current.known,
      });
      editor.current.setMarks(now.current.placed);
      if (caret !== null) editor.current.select(from, to);
      setState("ready");
    };
    start().catch(() => {
      if (!isUnmounted) setState("failed");
    });
    return () => {
      isUnmounted = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => {
    // A text that the editor reported comes back after the next render, when the editor may hold a newer one. Only
    // texts of the page itself are written into the editor.
    const at = reported.current.indexOf(text);
    reported.current.splice(0, at < 0 ? reported.current.length : at + 1);
    if (at < 0) editor.current?.setText(text);
  }, [text]);
  useEffect(() => editor.current?.setMarks(placed), [placed]);
  // The editor cannot measure while it is hidden. Measuring before the paint gives it its height.
  useLayoutEffect(() => editor.current?.measure(), [state]);

  const select = ({ from, to }: { from: number; to: number }): void => {
    editor.current?.select(from, to);
    area.current?.focus();
    area.current?.setSelectionRange(from, to);
  };
  const go = (problem: PlacedProblem): void =>
    select(placed.find((one) => one === problem) ?? { from: 0, to: 0 });
  useLayoutEffect(() => {
    if (jump !== null) select(jump);
  }, [jump]);
  const isReady = state === "ready";
  const errors = placed.filter(({ severity }) => severity === "error");
  return html`<div class="editor">
      <div ref=${host} class="editor-host" hidden=${!isReady} onKeyDown=${keepToEditor}></div>
      ${
        !isReady &&
        html`<div class="editor-plain" data-text=${text}><textarea ref=${area} aria-label=${label} aria-invalid=${errors.length > 0} rows="1" spellcheck=${false}
        autocomplete="off" autocapitalize="off" value=${text} onInput=${(event: InputEvent) => onText((event.target as HTMLTextAreaElement).value)}
        onKeyDown=${(event: KeyboardEvent) => {
          if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return;
          event.preventDefault();
          onSave();
        }}></textarea></div>`
      }
      <div class="editor-foot">
        <p class="editor-rule">${
          words === null
            ? html`<span class="quiet">${state === "failed" ? "The editor could not load. You can edit this plain text instead." : KEYS}</span>`
            : html`<code>${words.field}</code> ${words.rule}${words.example !== null && html` <span class="quiet">For example <code>${words.example}</code></span>`}
              <${DocsLink} to=${docsOfField(words.field, (index) => readActionType(text, index))}>More<//>`
        }</p>
        <p class="editor-state" role="status">${formatState(errors.length, checked.state)}</p>
      </div>
    </div>
    <${ProblemList} problems=${errors} onGo=${go} />
    <${WarningList} warnings=${warned.filter(({ message }) => checked.state !== "checking" && !placed.some((one) => one.message === message))} />
    ${placed.some(({ severity }) => severity === "warning") && html`<${WarningLines} placed=${placed} onGo=${go} />`}`;
}

/** Returns the type of an action, or null if the text is not JSON or has no such action. */
function readActionType(text: string, index: number): string | null {
  try {
    const type: unknown = JSON.parse(text)?.actions?.[index]?.type;
    return typeof type === "string" && /^[a-z_]+$/.test(type) ? type : null;
  } catch {
    return null;
  }
}

const STATE_WORDS = { checking: "Checking…", checked: "Valid", unknown: "Not checked" } as const;

function formatState(errors: number, state: keyof typeof STATE_WORDS): string {
  return errors > 0 ? formatCount(errors, "problem") : STATE_WORDS[state];
}

/** Stops keys from reaching the page's shortcuts, which are letters. */
function keepToEditor(event: KeyboardEvent): void {
  if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
}

function WarningLines({
  placed,
  onGo,
}: {
  placed: readonly Placed[];
  onGo: (problem: PlacedProblem) => void;
}): View {
  return html`<ul class="editor-warnings" aria-label="Warnings">
    ${placed
      .filter(({ severity }) => severity === "warning")
      .map(
        (one, at) => html`<li key=${at}>
          <button type="button" class="problem-place" onClick=${() => onGo(one)}><span class="problem-line">line ${one.line}</span></button>
          <span><${Sentence} text=${one.message} /></span></li>`,
      )}
  </ul>`;
}
