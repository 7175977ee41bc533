/** Whether somebody reads what is shown, so that nothing may move under their eyes. */
import { useEffect, useState } from "preact/hooks";

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
  useEffect(() => {
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
