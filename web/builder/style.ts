/** Style sheets of the builder. They are in its lazy chunk, and the page adopts them when the builder first renders. */
const adopted = new Set<string>();

/** Adds a style sheet to the page, once. It follows the sheets of the first load, so it wins over them. */
export function useStyle(css: string): void {
  if (adopted.has(css)) return;
  adopted.add(css);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
}
