/** The style of the documentation: the dashboard's colors and fonts, the pages' own rules, and the theme that the user chose in the dashboard. */
import { createHash } from "node:crypto";
import frame from "../../../web/style/docs/frame.css" with { type: "text" };
import lists from "../../../web/style/docs/list.css" with { type: "text" };
import text from "../../../web/style/docs/text.css" with { type: "text" };
import tokens from "../../../web/style/token.css" with { type: "text" };
import { pathOf } from "./link.ts";

export const LOOK = [tokens, frame, text, lists].join("\n");

/** Applies the stored choice of web/shell/theme.ts. The pages follow the system's theme if there is no stored choice or no script runs. */
export const THEME = `{
  const follow = () => {
    let kept = null;
    try {
      kept = localStorage.getItem("relay.theme");
    } catch {}
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
    else delete document.documentElement.dataset.theme;
  };
  follow();
  addEventListener("storage", follow);
}
`;

/** Names a file by its content, so that browsers can cache it permanently. */
const nameFile = (name: string, text: string, ending: string): string =>
  `${name}-${createHash("sha256").update(text).digest("hex").slice(0, 12)}.${ending}`;
export const LOOK_FILE = nameFile("look", LOOK, "css");
export const THEME_FILE = nameFile("theme", THEME, "js");
export const LOOK_PATH = pathOf(LOOK_FILE);
export const THEME_PATH = pathOf(THEME_FILE);
