/** Detects a user who is reading, so that the content does not move. */
import { useLayoutEffect, useState } from "preact/hooks";

type Rests = "hidden" | "scrolled" | "selected";

/** A page that is scrolled further than this is being read. */
const READING_PX = 120;

/** Returns why refreshing pauses, or null if it does not. */
function whyRests(): Rests | null {
  if (document.hidden) return "hidden";
  if (scrollY > READING_PX) return "scrolled";
  return getSelection()?.isCollapsed === false ? "selected" : null;
}

export function isReading(): boolean {
  return whyRests() !== null;
}

export function useRests(): Rests | null {
  const [why, setWhy] = useState(whyRests);
  useLayoutEffect(() => {
    const update = (): void => setWhy(whyRests());
    addEventListener("scroll", update, { passive: true });
    document.addEventListener("selectionchange", update);
    document.addEventListener("visibilitychange", update);
    return () => {
      removeEventListener("scroll", update);
      document.removeEventListener("selectionchange", update);
      document.removeEventListener("visibilitychange", update);
    };
  }, []);
  return why;
}

/** Longest time for which a press delays updates. The page may miss the end of a press, for example in a system menu. */
const PRESS_MS = 10_000;
const waiting = new Set<() => void>();
let pressed: ReturnType<typeof setTimeout> | null = null;

/** Runs the function now, or once the pressed pointer is released. Content that moved during a press would miss its click. */
export function whenReleased(act: () => void): void {
  if (pressed === null) act();
  else waiting.add(act);
}

function release(): void {
  if (pressed === null) return;
  clearTimeout(pressed);
  pressed = null;
  const acts = [...waiting];
  waiting.clear();
  for (const act of acts) act();
}

function press({ button, isPrimary }: PointerEvent): void {
  if (button !== 0 || !isPrimary) return;
  if (pressed !== null) clearTimeout(pressed);
  pressed = setTimeout(release, PRESS_MS);
}

addEventListener("pointerdown", press, { capture: true, passive: true });
// The browser dispatches the click in the same task, so the timeout runs after it.
for (const end of ["pointerup", "pointercancel"])
  addEventListener(end, () => setTimeout(release), { capture: true, passive: true });
