/** The style sheet of the documentation: the dashboard's colours and faces, and the pages' own rules. */
import { createHash } from "node:crypto";
import frame from "../../web/style/docs/frame.css" with { type: "text" };
import lists from "../../web/style/docs/list.css" with { type: "text" };
import text from "../../web/style/docs/text.css" with { type: "text" };
import tokens from "../../web/style/token.css" with { type: "text" };
import { pathOf } from "./link.ts";

export const LOOK = [tokens, frame, text, lists].join("\n");

/** Named by its content, so that browsers keep it for good. */
export const LOOK_FILE = `look-${createHash("sha256").update(LOOK).digest("hex").slice(0, 12)}.css`;
export const LOOK_PATH = pathOf(LOOK_FILE);
