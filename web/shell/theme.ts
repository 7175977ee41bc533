/** Light, dark, or as the system says. The choice is this browser's. */
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
    // It then lasts as long as the page.
  }
}

export function applyTheme(): void {
  const now = theme.get();
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
}
