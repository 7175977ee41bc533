/** Theme: light, dark or the system's. The browser stores the choice. */
import { makeCell } from "../base/cell.ts";

export type Theme = "system" | "light" | "dark";

const KEY = "relay.theme";

export const theme = makeCell<Theme>(recall());

function recall(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

export function chooseTheme(next: Theme): void {
  theme.set(next);
  applyTheme();
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // The choice lasts until the page unloads if there is no storage.
  }
}

export function applyTheme(): void {
  const now = theme.get();
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
}
