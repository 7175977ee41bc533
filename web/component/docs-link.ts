/** Link to a page of the documentation on the same service. It opens in a new tab, so that the user stays in the dashboard. */
import { html, type View } from "../base/html.ts";

/** Pages of the documentation that the dashboard links. */
export const DOCS = {
  all: "/docs",
  sent: "/docs/provider-says-sent",
  access: "/docs/customer-without-access",
  rotate: "/docs/rotate-secret",
  channels: "/docs/alert-channels",
  singleSignOn: "/docs/single-sign-on",
} as const;

export function DocsLink({ to, children }: { to: string; children: View }): View {
  return html`<a class="docs-link" href=${to} target="_blank" rel="noreferrer">${children}</a>`;
}

const PLACES: readonly (readonly [RegExp, string])[] = [
  [/^trigger\.verify\.signedPayload\b/, "rules-of-the-signed-text"],
  [/^trigger\.verify\b/, "verify"],
  [/^trigger\.map\b/, "map"],
  [/^trigger\.when\b/, "when"],
  [/^trigger\.customer\b/, "customer"],
  [/^trigger\.trustUnsignedEvents\b/, "unsigned-events"],
  [/^trigger\b/, "triggers"],
];

/** Returns the documentation page of a definition's field, such as `actions.0.entitlement`. `typeOf` returns the type of an action by its index. */
export function docsOfField(field: string, typeOf: (index: number) => string | null): string {
  const action = /^actions\.(\d+)/.exec(field);
  if (action !== null) {
    const type = typeOf(Number(action[1]));
    return type === null ? "/docs/actions" : `/docs/actions#${type}`;
  }
  const [, anchor = "fields"] = PLACES.find(([pattern]) => pattern.test(field)) ?? [];
  return `/docs/definition#${anchor}`;
}
