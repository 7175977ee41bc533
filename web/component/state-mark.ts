/** State as a shape with a word, so that color is never the only sign. Only failures are red. */
import { html, type View } from "../base/html.ts";

const WORDS: Readonly<Record<string, string>> = {
  queued: "Queued",
  running: "Running",
  retrying: "Retrying",
  done: "Done",
  failed: "Failed",
  dead: "Dead",
  refused: "Rejected",
  active: "Active",
  paused: "Paused",
  skipped: "Skipped",
  ok: "OK",
  interrupted: "Interrupted",
};

const RING = "M5 .5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9Z";
/** Shapes in a 10 by 10 box. Inner paths are holes. */
const SHAPES = {
  full: RING,
  half: `${RING}M5 2v6a3 3 0 0 0 0-6Z`,
  going: `${RING}M5 1.9a3.1 3.1 0 1 0 0 6.2 3.1 3.1 0 0 0 0-6.2ZM5 3.4a1.6 1.6 0 1 1 0 3.2 1.6 1.6 0 0 1 0-3.2Z`,
  empty: `${RING}M5 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z`,
  barred: `${RING}M2.3 4.2h5.4v1.6H2.3Z`,
  triangle: "M5 .6 9.8 9.2H.2Z",
  cross: "M1.7.4 5 3.7 8.3.4l1.3 1.3L6.3 5l3.3 3.3-1.3 1.3L5 6.3 1.7 9.6.4 8.3 3.7 5 .4 1.7Z",
  bars: "M1.6.8h2.6v8.4H1.6ZM5.8.8h2.6v8.4H5.8Z",
} as const;

const SHAPE_OF: Readonly<Record<string, keyof typeof SHAPES>> = {
  done: "full",
  ok: "full",
  active: "full",
  queued: "half",
  waiting: "half",
  retrying: "half",
  running: "going",
  failed: "triangle",
  interrupted: "triangle",
  dead: "cross",
  refused: "barred",
  paused: "bars",
};

/** Shows only the shape, next to words that say the same. */
export function StateShape({ state }: { state: string }): View {
  return html`<svg class="shape shape-${state}" viewBox="0 0 10 10" aria-hidden="true" focusable="false"><path fill-rule="evenodd" d=${SHAPES[SHAPE_OF[state] ?? "empty"]} /></svg>`;
}

export function StateMark({ state, word }: { state: string; word?: string }): View {
  return html`<span class="state state-${state}"><${StateShape} state=${state} />${word ?? WORDS[state] ?? state}</span>`;
}

/** Shows the state of an event. A queued event with a reason waits for its next attempt. */
export function EventMark({ event }: { event: { state: string; reason: string | null } }): View {
  const isRetrying = event.state === "queued" && event.reason !== null;
  return html`<${StateMark} state=${isRetrying ? "retrying" : event.state} />`;
}
