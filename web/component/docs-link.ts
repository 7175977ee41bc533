/** A link to a page of the documentation, which the same service has. It opens beside the dashboard, so that nothing here is left. */
import { html, type View } from "../base/html.ts";

/** The pages that the dashboard leads to. */
export const DOCS = {
  all: "/docs",
  sent: "/docs/provider-says-sent",
  access: "/docs/customer-without-access",
  rotate: "/docs/rotate-secret",
} as const;

export function DocsLink({ to, children }: { to: string; children: View }): View {
  return html`<a class="docs-link" href=${to} target="_blank" rel="noreferrer">${children}</a>`;
}

const PLACES: readonly (readonly [RegExp, string])[] = [
  [/^trigger\.verify\.signedPayload\b/, "rules-of-the-signed-text"],
  [/^trigger\.verify\b/, "verify"],
  [/^trigger\.map\b/, "map"],
  [/^trigger\.when\b/, "when"],
  [/^trigger\.trustUnsignedEvents\b/, "unsigned-events"],
  [/^trigger\b/, "triggers"],
];

/** The page that tells of a definition's field, such as `actions.0.entitlement`; `typeOf`: the type of an action by its number. */
export function docsOfField(field: string, typeOf: (index: number) => string | null): string {
  const action = /^actions\.(\d+)/.exec(field);
  if (action !== null) {
    const type = typeOf(Number(action[1]));
    return type === null ? "/docs/actions" : `/docs/actions#${type}`;
  }
  const [, anchor = "fields"] = PLACES.find(([pattern]) => pattern.test(field)) ?? [];
  return `/docs/definition#${anchor}`;
}
