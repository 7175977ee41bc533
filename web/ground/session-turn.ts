/** Counts sign-ins, so that what a lost session failed to load is loaded again. */
import { makeCell } from "./cell.ts";

export const sessionTurn = makeCell(0);
