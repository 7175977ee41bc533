/** View of two texts for a save conflict: the stored text and the user's text, which stays editable. A click takes over a difference. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { theme } from "./theme.ts";

export interface SideBySide {
  /** Returns the user's text. */
  text(): string;
  destroy(): void;
}

interface Sides {
  shadow: ShadowRoot;
  theirs: { text: string; label: string };
  mine: { text: string; label: string };
  /** The screen is narrow: show one text with the stored version above each difference. */
  isNarrow: boolean;
}

export function mountSideBySide({ shadow, theirs, mine, isNarrow }: Sides): SideBySide {
  const shared = (label: string): Extension => [
    lineNumbers(),
    json(),
    bracketMatching(),
    indentUnit.of("  "),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    theme,
  ];
  const written: Extension = [
    shared(mine.label),
    history(),
    keymap.of([...historyKeymap, indentWithTab, ...defaultKeymap]),
  ];
  if (isNarrow) {
    const merging = unifiedMergeView({ original: theirs.text, mergeControls: drawControl });
    const state = EditorState.create({ doc: mine.text, extensions: [written, merging] });
    const view = new EditorView({ state, parent: shadow, root: shadow });
    return { text: () => view.state.doc.toString(), destroy: () => view.destroy() };
  }
  const view = new MergeView({
    a: {
      doc: theirs.text,
      extensions: [shared(theirs.label), EditorState.readOnly.of(true), EditorView.editable.of(false)],
    },
    b: { doc: mine.text, extensions: written },
    parent: shadow,
    root: shadow,
    revertControls: "a-to-b",
    renderRevertControl: () => drawButton("→", "Use their version here"),
    collapseUnchanged: { margin: 3, minSize: 6 },
  });
  return { text: () => view.b.state.doc.toString(), destroy: () => view.destroy() };
}

function drawControl(type: "reject" | "accept", act: (event: MouseEvent) => void): HTMLElement {
  const button = type === "accept" ? drawButton("Keep my version", "") : drawButton("Use their version", "");
  button.addEventListener("click", act);
  return button;
}

function drawButton(text: string, label: string): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.className = "cm-button cm-take";
  if (label !== "") {
    button.setAttribute("aria-label", label);
    button.title = label;
  }
  return button;
}
