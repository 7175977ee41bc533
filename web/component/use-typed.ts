/** Text of a search while the user types. It is reported when the typing pauses, and it follows changes of the search from elsewhere. */
import { useEffect, useRef, useState } from "preact/hooks";

interface Typing {
  typed: string;
  onType: (event: InputEvent) => void;
  /** Replaces the text without reporting it. */
  replace: (text: string) => void;
}

/** `value` is the current search and `onChange` changes it. A text that matches `waits` is not reported after a pause. */
export function useTyped(
  value: string,
  onChange: (typed: string) => void,
  { restMs, waits }: { restMs: number; waits?: RegExp },
): Typing {
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  const replace = (text: string): void => {
    reported.current = text;
    setTyped(text);
  };
  useEffect(() => {
    if (value !== reported.current) replace(value);
  }, [value]);
  useEffect(() => {
    if (typed === reported.current || waits?.test(typed) === true) return;
    const timer = setTimeout(() => {
      reported.current = typed;
      onChange(typed);
    }, restMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return { typed, onType: (event) => setTyped((event.target as HTMLInputElement).value), replace };
}
