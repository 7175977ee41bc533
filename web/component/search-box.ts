/** Search box of a page. `/` focuses it. It reports the text when the user stops typing. */
import type { Permission } from "../../src/platform/account/permission.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";
import { useTyped } from "./use-typed.ts";

const REST_MS = 200;

export function SearchBox({
  value,
  label,
  needs,
  onValue,
}: {
  value: string;
  label: string;
  /** The permission of a member for whom the box shows. Absent: everyone. */
  needs?: Permission;
  onValue: (value: string) => void;
}): View {
  const { typed, onType } = useTyped(value, onValue, { restMs: REST_MS });
  return html`<label class="search" data-needs=${needs}><${Icon} name="search" size=${14} />
    <input type="search" data-search aria-label=${label} placeholder=${label} value=${typed}
    onInput=${onType} />
      <kbd aria-hidden="true">/</kbd></label>`;
}
