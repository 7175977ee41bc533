/** Keys of a page, beside those that the whole dashboard has: not while something is being written, nor behind a dialog. */
import { useLayoutEffect, useRef } from "preact/hooks";

/** What each key does; false: it did nothing, and means what it means elsewhere. */
export function useKeys(keys: Readonly<Record<string, () => unknown>>): void {
  const now = useRef(keys);
  now.current = keys;
  // With the page, not a moment after it: a key that is pressed as soon as the page is seen counts.
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
    // Before the dashboard's own keys, which leave alone what was taken.
    document.addEventListener("keydown", press, { capture: true });
    return () => document.removeEventListener("keydown", press, { capture: true });
  }, []);
}
