/** The search of a page: `/` goes there. What is typed is told when the typing rests. */
import { useEffect, useRef, useState } from "preact/hooks";
import { html, type View } from "../ground/html.ts";
import { Icon } from "./icon.ts";

const REST_MS = 200;

export function SearchBox({
  value,
  label,
  onValue,
}: {
  value: string;
  label: string;
  onValue: (value: string) => void;
}): View {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => {
    if (typed === told.current) return;
    const timer = setTimeout(() => {
      told.current = typed;
      onValue(typed);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<label class="search"><${Icon} name="search" size=${14} />
    <input type="search" data-search aria-label=${label} placeholder=${label} value=${typed}
    onInput=${(event: InputEvent) => setTyped((event.target as HTMLInputElement).value)} />
      <kbd aria-hidden="true">/</kbd></label>`;
}
