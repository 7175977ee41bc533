/** The style sheet of the documentation: the dashboard's colours and faces, and the pages' own rules. */
import { createHash } from "node:crypto";
import rules from "../../web/style/docs.css" with { type: "text" };
import tokens from "../../web/style/token.css" with { type: "text" };
import { pathOf } from "./link.ts";

export const LOOK = `${tokens}\n${rules}`;

/** Named by its content, so that browsers keep it for good. */
export const LOOK_FILE = `look-${createHash("sha256").update(LOOK).digest("hex").slice(0, 12)}.css`;
export const LOOK_PATH = pathOf(LOOK_FILE);
