/** Characters by which a text from outside deceives who reads it, and how they are written so that they cannot. */

/**
 * Controls other than newline and tab, what turns or hides text, letters that are blank, halves of a pair; but not the joiner inside an emoji.
 * And the marks upon one letter beyond what any script piles up.
 */
export const TRICKY =
  /(?![\n\t])(?!(?<=\p{Extended_Pictographic}|\ufe0f)\u200d)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\u034f|[\u115f\u1160\u2800\u3164\uffa0]|[\u17b4\u17b5]|(?<=[\p{Mn}\p{Me}]{5})[\p{Mn}\p{Me}]+/gu;

/** The text with its tricky characters as escapes, such as `\u202e`. */
export function sayTricky(text: string): string {
  return text.replaceAll(TRICKY, escapeOf);
}

/** Of one character, or of a pile of marks. */
export function escapeOf(characters: string): string {
  return Array.from(characters, (one) => `\\u${hexOf(one).padStart(4, "0")}`).join("");
}

export function hexOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
