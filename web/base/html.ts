/**
 * Template tag of every view: htm over Preact. A value in a template is text or an attribute and never markup, so no
 * payload can become part of the page. Labels and tooltips have their deceptive characters escaped.
 */
import htm from "htm";
import { h, type VNode } from "preact";
import { escapeTricky } from "./tricky.ts";

/** Return value of a component. */
export type View = VNode | VNode[] | string | number | null | undefined | false;

const LABELS = ["title", "aria-label"] as const;

/** Sets `this[0] = 3`, which makes htm create static parts again on each call. A template that is shown several times then has separate elements. */
function make(
  this: unknown[],
  type: unknown,
  props: Record<string, unknown> | null,
  ...children: unknown[]
): VNode {
  this[0] = 3;
  // Skips components, because a component may show its title as text, where each escape is highlighted.
  if (typeof type === "string" && props !== null)
    for (const name of LABELS) {
      const words = props[name];
      if (typeof words === "string") props[name] = escapeTricky(words);
    }
  return (h as (...parts: unknown[]) => VNode)(type, props, ...children);
}

export const html = htm.bind<VNode>(make as never);
