/** Selection of rows. A row that leaves the list also leaves the selection. */
import { useMemo, useRef, useState } from "preact/hooks";

export interface Selection {
  chosen: ReadonlySet<string>;
  /** Toggles a row. `through` selects every row from the previously chosen one to this one. */
  choose(id: string, through: boolean): void;
  set(ids: readonly string[]): void;
}

/** `items` is the list in its shown order. */
export function useSelection(items: readonly { id: string }[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const last = useRef<string | null>(null);
  const chosen = useMemo(
    () => new Set(items.filter(({ id }) => ids.has(id)).map(({ id }) => id)),
    [items, ids],
  );
  const choose = (id: string, through: boolean): void => {
    const [from, to] = [last.current ?? id, id].map((one) => items.findIndex((item) => item.id === one));
    last.current = id;
    const next = new Set(chosen);
    if (through && from !== undefined && to !== undefined && from >= 0 && to >= 0)
      for (const item of items.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(item.id);
    else if (!next.delete(id)) next.add(id);
    setIds(next);
  };
  return { chosen, choose, set: (listed) => setIds(new Set(listed)) };
}
