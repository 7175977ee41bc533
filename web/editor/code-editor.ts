/**
 * CodeMirror editor, loaded on first use. It runs in a shadow root with adopted style sheets, which the content
 * security policy allows. The page passes its text and its marks. It never calls the service.
 */
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
} from "@codemirror/language";
import { type Diagnostic, lintGutter, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState } from "@codemirror/state";
import {
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip,
} from "@codemirror/view";
import { completes } from "./completion.ts";
import { type JsonSpot, readTree, spotAt } from "./json-tree.ts";
import { describePlace, type PlaceWords } from "./place-words.ts";
import type { Known } from "./schema.ts";
import { theme } from "./theme.ts";

export interface CodeMark {
  from: number;
  to: number;
  severity: "error" | "warning";
  message: string;
}

export interface CodeEditor {
  setText(text: string): void;
  setMarks(marks: readonly CodeMark[]): void;
  select(from: number, to: number): void;
  /** Measures the editor now rather than in the next frame. */
  measure(): void;
  destroy(): void;
}

interface Wanted {
  shadow: ShadowRoot;
  text: string;
  label: string;
  /** Description of the editor's keys. */
  hint: string;
  onText(text: string): void;
  onSave(): void;
  /** Receives the rule of the caret's place, or null. */
  onPlace(words: PlaceWords | null): void;
  know(): Omit<Known, "root"> | null;
}

/** Time after Escape in which Tab leaves the editor. */
const LEAVE_MS = 3_000;

/** Returns the height of the bar that covers the lower edge of the window, in px. */
function barHeight(): number {
  return document.querySelector<HTMLElement>(".outcome-line")?.offsetHeight ?? 0;
}

/** Marks a change that came from the page, which the editor does not report back. */
const FROM_PAGE = Annotation.define<true>();

export function mountEditor({
  shadow,
  text,
  label,
  hint,
  onText,
  onSave,
  onPlace,
  know,
}: Wanted): CodeEditor {
  let read: { text: string; known: Known } | null = null;
  const knowText = (now: string): Known | null => {
    const rest = know();
    if (rest === null) return null;
    if (read?.text !== now || read.known.schema !== rest.schema || read.known.catalog !== rest.catalog)
      read = { text: now, known: { ...rest, root: readTree(now) } };
    return read.known;
  };
  const describeAt = (state: EditorState, at: number) => {
    const now = state.doc.toString();
    const known = knowText(now);
    const spot = known === null ? null : spotAt(known.root, at);
    if (known === null || spot === null) return null;
    const words = describePlace(known, spot, nameOf(now, spot));
    return words === null ? null : { words, spot };
  };
  const save = (): boolean => {
    onSave();
    return true;
  };
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      lintGutter(),
      foldGutter(),
      codeFolding(),
      history(),
      json(),
      bracketMatching(),
      closeBrackets(),
      indentOnInput(),
      indentUnit.of("  "),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      search({ top: true }),
      completes(knowText),
      hoverTooltip((view, at): Tooltip | null => {
        const description = describeAt(view.state, at);
        if (description === null) return null;
        const { words, spot } = description;
        return { pos: spot.from, end: spot.to, above: true, create: () => ({ dom: drawWords(words) }) };
      }),
      EditorView.lineWrapping,
      // Keeps the caret above the bar at the lower edge.
      EditorView.scrollMargins.of(() => ({ bottom: barHeight() })),
      EditorView.domEventHandlers({ beforeinput: replaceSelected }),
      // The next Tab leaves the editor, even if Escape also closes something.
      EditorView.domEventObservers({
        keydown: ({ key }, editor) => {
          if (key === "Escape") editor.setTabFocusMode(LEAVE_MS);
        },
      }),
      EditorView.contentAttributes.of({
        "aria-label": label,
        "aria-description": hint,
        "data-gramm": "false",
      }),
      keymap.of([
        { key: "Mod-s", preventDefault: true, run: save },
        { key: "F8", run: nextDiagnostic },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...searchKeymap,
        ...foldKeymap,
        ...historyKeymap,
        indentWithTab,
        ...defaultKeymap,
      ]),
      theme,
      EditorView.updateListener.of((update) => {
        const fromPage = update.transactions.some((one) => one.annotation(FROM_PAGE));
        if (update.docChanged && !fromPage) onText(update.state.doc.toString());
        if (update.docChanged || update.selectionSet)
          onPlace(describeAt(update.state, update.state.selection.main.head)?.words ?? null);
      }),
    ],
  });
  const view = new EditorView({ state, parent: shadow, root: shadow });
  return {
    setText(next) {
      const { doc } = view.state;
      if (doc.toString() === next) return;
      // One step of the undo history, so that an undo restores the user's text.
      view.dispatch({ changes: { from: 0, to: doc.length, insert: next }, annotations: FROM_PAGE.of(true) });
    },
    setMarks(marks) {
      const { length } = view.state.doc;
      const shown = marks.map(
        ({ from, to, ...rest }): Diagnostic => ({
          ...rest,
          from: Math.min(from, length),
          to: Math.min(to, length),
        }),
      );
      view.dispatch(setDiagnostics(view.state, shown));
    },
    select(from, to) {
      const { length } = view.state.doc;
      view.dispatch({
        selection: { anchor: Math.min(from, length), head: Math.min(to, length) },
        effects: EditorView.scrollIntoView(Math.min(from, length), { y: "center" }),
      });
      view.focus();
    },
    measure: () => void view.coordsAtPos(0),
    destroy: () => view.destroy(),
  };
}

/**
 * Replaces a selection with the typed text in the editor itself. A browser that does it keeps the old look as a style
 * attribute, which the content security policy blocks and reports.
 */
function replaceSelected(event: InputEvent, view: EditorView): boolean {
  const { main, ranges } = view.state.selection;
  const { data } = event;
  if (event.inputType !== "insertText" || data === null || view.composing || main.empty || ranges.length > 1)
    return false;
  event.preventDefault();
  const text = view.state.toText(data);
  const transaction = () =>
    view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  const isTaken = view.state
    .facet(EditorView.inputHandler)
    .some((handle) => handle(view, main.from, main.to, data, transaction));
  if (!isTaken) view.dispatch(transaction());
  return true;
}

function nameOf(text: string, { is, from, to }: JsonSpot): string | null {
  if (is !== "name" || from === to) return null;
  return text.slice(from, to).replaceAll('"', "");
}

function drawWords({ field, rule, example }: PlaceWords): HTMLElement {
  const dom = document.createElement("div");
  dom.className = "cm-rule";
  const put = (tag: string, text: string, className = ""): void => {
    const part = document.createElement(tag);
    part.textContent = text;
    part.className = className;
    dom.append(part);
  };
  put("code", field);
  put("p", rule);
  if (example !== null) put("code", `For example ${example}`, "cm-example");
  return dom;
}
