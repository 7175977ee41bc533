/** Cards of the actions in their order. Cards move by mouse, by buttons and by keys. */
import { useRef, useState } from "preact/hooks";
import { type Json, parseExact } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { Icon } from "../../component/icon.ts";
import { SafeText } from "../../component/safe-text.ts";
import { notifyDone } from "../../component/toast.ts";
import { insertItem, moveItem, removeAt } from "../../editor/text-edit.ts";
import { formatAction } from "../../relay/relay-words.ts";
import { CallPreview } from "./call-preview.ts";
import { EditedInJson, PartProblems } from "./field-frame.ts";
import { constOf, type ListPart, type Part } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { GroupFields } from "./group-fields.ts";
import { emptyVariant } from "./part-edit.ts";

const DISCRIMINATOR = "type";

export function ActionList({ part, text }: { part: ListPart; text: string }): View {
  const { edit, announce, focusNext } = useForm();
  /** Index of the card that the user drags; null: none. */
  const dragged = useRef<number | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const { items, steps } = part;
  const move = (from: number, to: number, focus: string): void => {
    if (to < 0 || to >= items.length || from === to) return;
    edit((now) => moveItem(now, steps, from, to));
    announce(`Action ${from + 1} is now action ${to + 1}.`);
    focusNext(`[data-card="${to}"] ${focus}`);
  };
  const remove = (index: number): void => {
    let [before, after] = ["", ""];
    edit((now) => {
      before = now;
      after = removeAt(now, [...steps, index]);
      return after;
    });
    const value = readValue(text, items[index]);
    focusNext(
      items.length > 1
        ? `[data-card="${Math.min(index, items.length - 2)}"] .form-card-title`
        : "[data-add-action]",
    );
    notifyDone(`Removed action ${index + 1}: ${formatAction(value)}.`, async () => {
      edit((now) => (now === after ? before : insertItem(now, steps, index, value)));
      focusNext(`[data-card="${index}"] .form-card-title`);
    });
  };
  return html`<section class="form-actions-list" aria-label="Actions" data-field="actions"><h2>Actions</h2>
    <p class="form-hint">${part.schema.description} Move an action with its buttons or with Alt+↑ and Alt+↓.</p><${PartProblems} part=${part} />
    <ol>${items.map(
      (item, index) =>
        html`<li key=${index}><${ActionCard} part=${item} index=${index} count=${items.length} summary=${formatAction(readValue(text, item))}
          isOver=${over === index && dragged.current !== index} onMove=${(to: number, focus: string) => move(index, to, focus)} onRemove=${() => remove(index)}
          onDrag=${(isStart: boolean) => {
            dragged.current = isStart ? index : null;
            setOver(null);
          }}
          onOver=${() => dragged.current !== null && setOver(index)}
          onDrop=${() => dragged.current !== null && move(dragged.current, index, ".form-card-title")} /></li>`,
    )}</ol>
    <${AddAction} part=${part} />
  </section>`;
}

function readValue(text: string, part: Part | undefined): Json {
  const node = part?.node;
  return node == null ? null : parseExact(text.slice(node.from, node.to));
}

function ActionCard({
  part,
  index,
  count,
  summary,
  isOver,
  onMove,
  onRemove,
  onDrag,
  onOver,
  onDrop,
}: {
  part: Part;
  index: number;
  count: number;
  summary: string;
  /** True if the user drags another card over this one. */
  isOver: boolean;
  onMove: (to: number, focus: string) => void;
  onRemove: () => void;
  onDrag: (isStart: boolean) => void;
  onOver: () => void;
  onDrop: () => void;
}): View {
  const name = `action ${index + 1}`;
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by === undefined || !event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    onMove(index + by, ".form-card-title");
  };
  const kind = part.is === "group" ? part.variants?.chosen : null;
  return html`<article class="card form-card ${isOver ? "form-card-over" : ""}" aria-label="Action ${index + 1}" data-card=${index} data-field="actions.${index}" onKeyDown=${press}
    onDragOver=${(event: DragEvent) => {
      event.preventDefault();
      onOver();
    }} onDrop=${(event: DragEvent) => {
      event.preventDefault();
      onDrop();
    }}>
    <div class="form-card-head">
      <span class="form-drag" draggable="true" title="Drag to move" aria-hidden="true" onDragStart=${(
        event: DragEvent,
      ) => {
        // Firefox drags only with data.
        event.dataTransfer?.setData("text/plain", String(index));
        onDrag(true);
      }} onDragEnd=${() => onDrag(false)}>⠿</span>
      <h3 class="form-card-title" tabindex="-1"><span class="form-card-number">${index + 1}</span> <${SafeText} text=${summary} limit=${120} /></h3>
      <div class="form-card-buttons">
        <button type="button" class="bare form-up" aria-label="Move ${name} up" title="Move up (Alt+↑)" aria-disabled=${index === 0} onClick=${() => onMove(index - 1, ".form-up")}><${Icon} name="up" /></button>
        <button type="button" class="bare form-down" aria-label="Move ${name} down" title="Move down (Alt+↓)" aria-disabled=${index === count - 1} onClick=${() => onMove(index + 1, ".form-down")}><${Icon} name="down" /></button>
        <button type="button" class="bare" aria-label="Remove ${name}" title="Remove" onClick=${onRemove}><${Icon} name="trash" /></button></div>
    </div>
    ${part.is === "json" ? html`<${EditedInJson} part=${part} />` : html`<${PartProblems} part=${part} />`}
    ${part.is === "group" && html`<${GroupFields} part=${part} />`}
    ${kind === "call_url" && html`<${CallPreview} index=${index} />`}
  </article>`;
}

/** List of the kinds of actions with what each one does. */
function AddAction({ part: { schema, steps, items } }: { part: ListPart }): View {
  const { edit, focusNext, announce } = useForm();
  const [isOpen, setOpen] = useState(false);
  const variants = schema.items?.oneOf ?? [];
  const max = schema.maxItems ?? Number.POSITIVE_INFINITY;
  const add = (value: { [name: string]: Json }, title: string): void => {
    edit((text) => insertItem(text, steps, items.length, value));
    setOpen(false);
    announce(`Added action ${items.length + 1}: ${title}.`);
    focusNext(`[data-card="${items.length}"] :is(input, textarea)`);
  };
  const toggle = (): void => {
    setOpen(!isOpen);
    if (!isOpen) focusNext(".form-kinds button");
  };
  return html`<div class="form-new-action" onKeyDown=${(event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.stopPropagation();
    setOpen(false);
    focusNext("[data-add-action]");
  }}>
    <button type="button" data-add-action aria-expanded=${String(isOpen)} disabled=${items.length >= max} onClick=${toggle}><${Icon} name="plus" size=${14} />Add an action</button>
    ${items.length >= max && html`<p class="form-hint">A relay has at most ${max} actions.</p>`}
    ${
      isOpen &&
      html`<ul class="form-kinds" aria-label="Kinds of actions">${variants.map((variant) => {
        const title = variant.title ?? constOf(variant, DISCRIMINATOR) ?? "";
        return html`<li key=${title}><button type="button" onClick=${() => add(emptyVariant(variant, DISCRIMINATOR), title)}><b>${title}</b><span>${variant.description}</span></button></li>`;
      })}</ul>`
    }</div>`;
}
