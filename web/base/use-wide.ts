/** Hook that says whether the window is wide enough for a panel next to the content. */
import { useEffect, useState } from "preact/hooks";

/** `px` is the required width. */
export function useWide(px: number): boolean {
  const [isWide, setWide] = useState(() => matchMedia(`(min-width: ${px}px)`).matches);
  useEffect(() => {
    const query = matchMedia(`(min-width: ${px}px)`);
    const update = (): void => setWide(query.matches);
    query.addEventListener("change", update);
    update();
    return () => query.removeEventListener("change", update);
  }, [px]);
  return isWide;
}
