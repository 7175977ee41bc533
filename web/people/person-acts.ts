/** Actions on a person. Each reports the service's answer, and can be undone if possible. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { PlannedDialog } from "../component/planned-dialog.ts";
import { useSend } from "../component/use-send.ts";
import { CreditDialog } from "./credit-dialog.ts";
import { EraseDialog } from "./erase-dialog.ts";
import { GrantDialog } from "./grant-dialog.ts";

type Open = "grant" | "credits" | "merge" | "erase" | null;

export function PersonActs({ place, now }: { place: Place; now: PersonNow }): View {
  const { person } = now;
  const [open, setOpen] = useState<Open>(null);
  const { send, isSending } = useSend();
  const path = apiPath(place, "persons", person.id);
  const isSuspended = person.status === "suspended";
  const setStatus = async (): Promise<void> => {
    const status = isSuspended ? "active" : "suspended";
    const undo = async (): Promise<void> => {
      await call("PATCH", path, { status: isSuspended ? "suspended" : "active" });
      invalidate(apiPath(place, "persons"));
    };
    const done = isSuspended ? `${person.email} is active again.` : `${person.email} is suspended.`;
    const changes = [apiPath(place, "persons")];
    await send({ method: "PATCH", path, body: { status }, changes, done, undo, tellsRefusal: true });
  };
  const close = (): void => setOpen(null);
  return html`<button data-needs="act_on_people" type="button" disabled=${isSuspended} title=${isSuspended ? "Activate the person first" : null} onClick=${() => setOpen("grant")}>Grant access…</button>
    <button data-needs="act_on_people" type="button" disabled=${isSuspended} title=${isSuspended ? "Activate the person first" : null} onClick=${() => setOpen("credits")}>Credits…</button>
    <button data-needs="act_on_people" type="button" disabled=${isSending} onClick=${setStatus}>${isSuspended ? "Activate" : "Suspend"}</button>
    <button data-needs="act_on_people" type="button" disabled=${isSuspended} title=${isSuspended ? "Activate the person first" : null} onClick=${() => setOpen("merge")}>Merge…</button>
    <button data-needs="erase" type="button" class="quiet-danger" onClick=${() => setOpen("erase")}>Erase…</button>
    ${open === "grant" && html`<${GrantDialog} place=${place} person=${person} onClose=${close} />`}
    ${open === "credits" && html`<${CreditDialog} place=${place} now=${now} onClose=${close} />`}
    ${
      open === "merge" &&
      html`<${PlannedDialog} title="Merge ${person.email} into another person" path=${apiPath(place, "persons", person.id, "merge")}
        field="into" label="Other person’s address or id" act="Merge" done=${`Everything of ${person.email} is moved.`}
        changes=${["persons", "purchases", "subscriptions", "grants"].map((part) => apiPath(place, part))} onClose=${close} />`
    }
    ${open === "erase" && html`<${EraseDialog} place=${place} now=${now} onClose=${close} />`}`;
}
