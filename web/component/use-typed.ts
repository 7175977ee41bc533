/** What is being typed into a search: it is told when the typing rests, and gives way to what the search becomes by other means. */
import { useEffect, useRef, useState } from "preact/hooks";

interface Typing {
  typed: string;
  onType: (event: InputEvent) => void;
  /** What stands there from now on, told by other means. */
  replace: (text: string) => void;
}

/** `value`: the search as it is; `tell` makes it another one, but not of what `waits` for more than a rest. */
export function useTyped(
  value: string,
  tell: (typed: string) => void,
  { restMs, waits }: { restMs: number; waits?: RegExp },
): Typing {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  const replace = (text: string): void => {
    told.current = text;
    setTyped(text);
  };
  useEffect(() => {
    if (value !== told.current) replace(value);
  }, [value]);
  useEffect(() => {
    if (typed === told.current || waits?.test(typed) === true) return;
    const timer = setTimeout(() => {
      told.current = typed;
      tell(typed);
    }, restMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return { typed, onType: (event) => setTyped((event.target as HTMLInputElement).value), replace };
}
