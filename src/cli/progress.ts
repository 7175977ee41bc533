/**
 * How far something long is, on one line of standard error that is drawn again; only where somebody looks at it. SQLite copies and checks a database
 * in one call, so a thread of its own looks at the file that grows.
 */
import type { CopyStep } from "../store/database-copy.ts";
import type { World } from "./world.ts";

const DRAW_EVERY_MS = 200;
const WORDS = { copying: "Copying the database", checking: "Checking the copy" } as const;

/** Runs in the thread, and shares nothing with this file: what it draws is sent to it. */
const WATCHER = `
const { statSync, writeSync } = require("node:fs");
let now = null;
let since = 0;
onmessage = ({ data }) => {
  now = data;
  since = performance.now();
};
setInterval(() => {
  if (now === null) return;
  const seconds = Math.floor((performance.now() - since) / 1000);
  let far = "";
  try {
    if (now.of > 0) far = "  " + Math.min(100, Math.floor((statSync(now.file).size / now.of) * 100)) + " %";
  } catch {}
  try {
    writeSync(2, "\\r\\u001b[K" + now.words + far + "  " + seconds + " s");
  } catch {}
}, ${DRAW_EVERY_MS});
`;

/** Draws the steps of a copy until it is disposed of; where nobody looks it does nothing. */
export class CopyProgress implements AsyncDisposable {
  readonly #world: World;
  #thread: Worker | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  readonly onStep = ({ doing, file, ofBytes }: CopyStep): void => {
    if (!this.#world.watched) return;
    this.#thread ??= new Worker(URL.createObjectURL(new Blob([WATCHER], { type: "application/javascript" })));
    this.#thread.postMessage({ words: WORDS[doing], file, of: doing === "copying" ? ofBytes : 0 });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#thread === null) return;
    await this.#thread.terminate();
    // What the thread drew is nobody's but its own.
    this.#world.redraw("");
    this.#world.redraw(null);
  }
}

/** `12,000 of 400,000 rows (3 %)`. */
export function sayFar(done: number, of: number, what: string): string {
  const share = of === 0 ? 100 : Math.floor((done / of) * 100);
  return `${done.toLocaleString("en")} of ${of.toLocaleString("en")} ${what} (${share} %)`;
}
