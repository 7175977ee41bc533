/**
 * The template tag every view is written with: htm over Preact. Whatever is put into a template is text or an attribute's value and never
 * markup, so nothing that a payload holds can become part of the page; nor does it turn or hide a tooltip, or what is read out.
 */
import htm from "htm";
import { h, type VNode } from "preact";
import { sayTricky } from "./tricky.ts";

/** What a component gives back. */
export type View = VNode | VNode[] | string | number | null | undefined | false;

const LABELS = ["title", "aria-label"] as const;

/** Static parts are made anew each time (`this[0] = 3`): one template shown in many places is many elements. */
function make(
  this: unknown[],
  type: unknown,
  props: Record<string, unknown> | null,
  ...children: unknown[]
): VNode {
  this[0] = 3;
  // A component's title may be shown as text, where each escape is marked.
  if (typeof type === "string" && props !== null)
    for (const name of LABELS) {
      const words = props[name];
      if (typeof words === "string") props[name] = sayTricky(words);
    }
  return (h as (...parts: unknown[]) => VNode)(type, props, ...children);
}

export const html = htm.bind<VNode>(make as never);
