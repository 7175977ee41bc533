/** Column of a table that shows how long ago a time was. */
import { html } from "../base/html.ts";
import type { Column } from "./table.ts";
import { Ago } from "./time.ts";

/** Makes the column. Its cell says "never" where `timeOf` returns null. */
export function timeColumn<Item>(
  name: string,
  title: string,
  priority: Column<Item>["priority"],
  timeOf: (item: Item) => string | null,
): Column<Item> {
  return { name, title, priority, size: "short", cell: (item) => html`<${Ago} at=${timeOf(item)} />` };
}
