/** Keyboard shortcuts of a page in addition to the dashboard's own. They do not apply while the user types or behind a dialog. */
import { useLayoutEffect, useRef } from "preact/hooks";

/** Registers a function for each key. A function that returns false leaves the key to other handlers. */
export function useKeys(keys: Readonly<Record<string, () => unknown>>): void {
  const now = useRef(keys);
  now.current = keys;
  // Registers the keys before the page is painted, so that a key pressed at once counts.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
      if (document.querySelector("dialog[open]") !== null) return;
      if (
        (event.target as HTMLElement).matches?.(
          "input:not([type=checkbox]), textarea, select, [contenteditable]",
        )
      )
        return;
      if (Object.hasOwn(now.current, event.key) && now.current[event.key]?.() !== false)
        event.preventDefault();
    };
    // Capturing makes these handlers run before the dashboard's own, which skip handled keys.
    document.addEventListener("keydown", press, { capture: true });
    return () => document.removeEventListener("keydown", press, { capture: true });
  }, []);
}
