/** Whether somebody reads what is shown, so that nothing may move under their eyes. */
import { useLayoutEffect, useState } from "preact/hooks";

type Rests = "hidden" | "scrolled" | "selected";

/** Scrolled further down than this, one is reading. */
const READING_PX = 120;

/** Why refreshing rests; null: it does not. */
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
    const look = (): void => setWhy(whyRests());
    addEventListener("scroll", look, { passive: true });
    document.addEventListener("selectionchange", look);
    document.addEventListener("visibilitychange", look);
    return () => {
      removeEventListener("scroll", look);
      document.removeEventListener("selectionchange", look);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return why;
}

/** A press that is not known to have ended, such as one that ended in a menu of the system, holds nothing up for longer. */
const PRESS_MS = 10_000;
const waiting = new Set<() => void>();
let pressed: ReturnType<typeof setTimeout> | null = null;

/** Does it now, or once the pointer that is pressed is released: what moved from under it between the two would take no click. */
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
// The click follows in the same turn.
for (const end of ["pointerup", "pointercancel"])
  addEventListener(end, () => setTimeout(release), { capture: true, passive: true });
