/**
 * The template tag every view is written with: htm over Preact. Whatever is put into a template is text or an attribute's value and never
 * markup, so nothing that a payload holds can become part of the page.
 */
import htm from "htm";
import { h, type VNode } from "preact";

/** What a component gives back. */
export type View = VNode | VNode[] | string | number | null | undefined | false;

/** Static parts are made anew each time (`this[0] = 3`): one template shown in many places is many elements. */
function make(this: unknown[], type: unknown, props: unknown, ...children: unknown[]): VNode {
  this[0] = 3;
  return (h as (...parts: unknown[]) => VNode)(type, props, ...children);
}

export const html = htm.bind<VNode>(make as never);
