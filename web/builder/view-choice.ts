/** The view that the user chose: the form with its JSON, or only the JSON. The browser keeps the choice. */

export type BuilderView = "both" | "json";

const KEY = "relay.builder";

export function recallView(): BuilderView {
  try {
    return localStorage.getItem(KEY) === "json" ? "json" : "both";
  } catch {
    return "both";
  }
}

export function keepView(view: BuilderView): void {
  try {
    localStorage.setItem(KEY, view);
  } catch {
    // Without storage the choice lasts until the page reloads.
  }
}
