/** Counts in words: "1 action", "2 actions", "1,204". */

export function sayCount(count: number, one: string, many = `${one}s`): string {
  return `${sayNumber(count)} ${count === 1 ? one : many}`;
}

export function sayNumber(count: number): string {
  return count.toLocaleString("en");
}
