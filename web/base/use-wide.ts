/** Whether the window has room for something beside the page's content. */
import { useEffect, useState } from "preact/hooks";

/** `px`: as wide as it must be. */
export function useWide(px: number): boolean {
  const [isWide, setWide] = useState(() => matchMedia(`(min-width: ${px}px)`).matches);
  useEffect(() => {
    const query = matchMedia(`(min-width: ${px}px)`);
    const look = (): void => setWide(query.matches);
    query.addEventListener("change", look);
    look();
    return () => query.removeEventListener("change", look);
  }, [px]);
  return isWide;
}
