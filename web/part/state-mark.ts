/** A state as a coloured dot and its word; the word alone carries the meaning. */
import { html, type View } from "../ground/html.ts";

const WORDS: Readonly<Record<string, string>> = {
  queued: "Queued",
  running: "Running",
  done: "Done",
  failed: "Failed",
  dead: "Dead",
  active: "Active",
  paused: "Paused",
  skipped: "Skipped",
  ok: "OK",
  interrupted: "Interrupted",
};

export function StateMark({ state, word }: { state: string; word?: string }): View {
  return html`<span class="state state-${state}"><span class="dot" aria-hidden="true" />${word ?? WORDS[state] ?? state}</span>`;
}
