/** The search of a page: `/` goes there. What is typed is told when the typing rests. */
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";
import { useTyped } from "./use-typed.ts";

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
  const { typed, onType } = useTyped(value, onValue, { restMs: REST_MS });
  return html`<label class="search"><${Icon} name="search" size=${14} />
    <input type="search" data-search aria-label=${label} placeholder=${label} value=${typed}
    onInput=${onType} />
      <kbd aria-hidden="true">/</kbd></label>`;
}
