/** Finds characters with which an external text can deceive its reader, and formats them as escapes. */

/**
 * Controls except newline and tab, characters that turn or hide text, blank letters and half pairs, but not the joiner
 * inside an emoji. Also more marks on one letter than any script uses.
 */
export const TRICKY =
  /(?![\n\t])(?!(?<=\p{Extended_Pictographic}|\ufe0f)\u200d)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\u034f|[\u115f\u1160\u2800\u3164\uffa0]|[\u17b4\u17b5]|(?<=[\p{Mn}\p{Me}]{5})[\p{Mn}\p{Me}]+/gu;

/** Replaces deceptive characters with escapes such as `\u202e`. */
export function escapeTricky(text: string): string {
  return text.replaceAll(TRICKY, escapeOf);
}

/** Escapes one character or a pile of marks. */
export function escapeOf(characters: string): string {
  return Array.from(characters, (one) => `\\u${hexOf(one).padStart(4, "0")}`).join("");
}

export function hexOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
