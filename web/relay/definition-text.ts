/** Finds places in a definition's text: where it stops being JSON, and on which line a field stands. It changes nothing in the text. */
import type { Problem } from "../../src/ground/refusal.ts";
import type { PlacedProblem } from "../part/problem-list.ts";

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}[\],:"]+))/y;

/** Offset of each field's name or item, by dotted path: `trigger.map.event_id`, `actions.0`. Reads as far as the text makes sense. */
function findPlaces(text: string): Map<string, number> {
  const places = new Map<string, number>();
  const open: { path: string; at: number; isList: boolean; name: string | null }[] = [];
  const join = (path: string, name: string | number): string =>
    path === "" ? String(name) : `${path}.${name}`;
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    const [whole, mark, quoted] = token;
    const offset = token.index + whole.length - whole.trimStart().length;
    const top = open.at(-1);
    if (mark === "}" || mark === "]") open.pop();
    else if (mark === ",") {
      if (top?.isList) top.at += 1;
      else if (top !== undefined) top.name = null;
    } else if (mark !== ":") {
      if (top !== undefined && !top.isList && top.name === null && quoted !== undefined) {
        top.name = readName(quoted);
        places.set(join(top.path, top.name), offset);
        continue;
      }
      const path = top === undefined ? "" : join(top.path, top.isList ? top.at : (top.name ?? ""));
      if (top?.isList) places.set(path, offset);
      if (mark === "{" || mark === "[") open.push({ path, at: 0, isList: mark === "[", name: null });
    }
  }
  return places;
}

function readName(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}

/** Each problem with the line of its field, or of the nearest thing around it that exists. */
export function placeProblems(
  text: string,
  problems: readonly Problem[],
): (PlacedProblem & { offset: number })[] {
  const places = findPlaces(text);
  return problems.map((problem) => {
    const parts = problem.field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
    for (let length = parts.length; length > 0; length--) {
      const offset = places.get(parts.slice(0, length).join("."));
      if (offset !== undefined) return { ...problem, offset, line: lineAt(text, offset) };
    }
    return { ...problem, offset: 0, line: 1 };
  });
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** Why the text is not JSON, with where; null where it is. */
export function findJsonProblem(text: string): (PlacedProblem & { offset: number }) | null {
  if (text.trim() === "")
    return { field: "", message: "The definition is empty: write one JSON object.", offset: 0, line: 1 };
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const message = (error as Error).message;
    const offset = offsetOf(message, text);
    return {
      field: "",
      message: `This is not JSON: ${message.replace(/ \(line .*\)$/, "")}.`,
      offset,
      line: lineAt(text, offset),
    };
  }
}

/** Browsers say where in their own words. */
function offsetOf(message: string, text: string): number {
  const position = /position (\d+)/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  const place = /line (\d+) column (\d+)/.exec(message);
  if (place !== null) {
    const before = text.split("\n").slice(0, Number(place[1]) - 1);
    return before.join("\n").length + Number(place[2]);
  }
  return text.length;
}
