/** Theme of the editor. It uses the dashboard's CSS variables, which reach into the shadow root, so that it follows the dashboard's theme. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px 0 6px" },
  ".cm-gutters": {
    backgroundColor: "var(--sunken)",
    color: "var(--text-quiet)",
    border: "0",
    fontSize: "12px",
    // Same width as the margin of the text area that replaces the editor while it loads (editor.css).
    minWidth: "56px",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--text)" },
  "&.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--accent-wash)",
    outline: "1px solid var(--accent)",
  },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-wash)" },
  // Replaces the library's symbols, which few fonts contain, and its light background.
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--text-soft)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"…"' },
  ".cm-foldGutter span": { cursor: "pointer", padding: "0 4px" },
  ".cm-foldPlaceholder": {
    backgroundColor: "var(--sunken)",
    borderColor: "var(--line-strong)",
    color: "var(--text-soft)",
    padding: "0 6px",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--info-wash)" },
  ".cm-searchMatch": { backgroundColor: "var(--wait-wash)", outline: "1px solid var(--wait)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-wash)", outlineColor: "var(--accent)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    boxShadow: "var(--shadow-high)",
    maxWidth: "min(440px, 90vw)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px", lineHeight: "20px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-fill)",
    color: "var(--on-accent)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-completionDetail": {
    marginLeft: "10px",
    color: "var(--text-quiet)",
    fontFamily: "var(--face)",
    fontSize: "12px",
    fontStyle: "normal",
  },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionInfo": {
    fontFamily: "var(--face)",
    fontSize: "13px",
    lineHeight: "18px",
    padding: "8px 10px",
  },
  ".cm-rule": { fontFamily: "var(--face)", fontSize: "13px", lineHeight: "18px", padding: "8px 10px" },
  ".cm-rule code": {
    display: "block",
    fontFamily: "var(--mono)",
    fontSize: "12px",
    overflowWrap: "anywhere",
  },
  ".cm-rule p": { margin: "2px 0 0" },
  ".cm-rule .cm-example": { marginTop: "6px", color: "var(--text-soft)" },
  ".cm-diagnostic": { fontFamily: "var(--face)", fontSize: "13px", padding: "8px 10px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad-fill)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--wait)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--wait)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-active": { backgroundColor: "transparent" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "3px 2px" },
  ".cm-lint-marker": { width: "13px", height: "13px" },
  ".cm-lintPoint:after": { borderBottomColor: "var(--bad)" },
  ".cm-panels": {
    backgroundColor: "var(--sunken)",
    color: "var(--text)",
    fontFamily: "var(--face)",
    zIndex: "2",
  },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel.cm-search": { display: "flex", flexWrap: "wrap", gap: "6px", padding: "8px 36px 8px 8px" },
  ".cm-panel.cm-search br": { display: "none" },
  ".cm-panel.cm-search label": { display: "flex", alignItems: "center", gap: "4px", fontSize: "13px" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button, .cm-panel.cm-search label": { margin: "0" },
  ".cm-panel.cm-search [name=close]": {
    top: "8px",
    right: "8px",
    width: "24px",
    height: "24px",
    fontSize: "18px",
    color: "var(--text-soft)",
  },
  ".cm-textfield": {
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    padding: "3px 8px",
    fontSize: "13px",
  },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    padding: "3px 10px",
    fontSize: "13px",
    "&:active": { backgroundImage: "none", backgroundColor: "var(--hover)" },
  },
  ".cm-changedLine": { backgroundColor: "var(--info-wash)" },
  ".cm-mergeView .cm-changedText": { background: "none" },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--info)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

/** Characters that turn or hide text and that the editor does not highlight by default. */
const TRICKY = /[\u202a-\u202c\u2060-\u2064\u2068]/u;

export const theme: Extension = [
  LOOK,
  syntaxHighlighting(COLOURS),
  highlightSpecialChars({ addSpecialChars: TRICKY }),
];
