/**
 * The text of {params}: a form's decoded fields, names sorted by code unit, name and value with nothing between; a repeated name
 * gives its distinct values, sorted, each as name and value. Source: recipes, "The signed text".
 */
export function joinFormParams(form: readonly (readonly [name: string, value: string])[]): Buffer {
  const values = new Map<string, Set<string>>();
  for (const [name, value] of form) {
    const known = values.get(name);
    if (known === undefined) values.set(name, new Set([value]));
    else known.add(value);
  }
  let text = "";
  for (const name of [...values.keys()].sort()) {
    for (const value of [...(values.get(name) ?? [])].sort()) text += name + value;
  }
  return Buffer.from(text);
}
