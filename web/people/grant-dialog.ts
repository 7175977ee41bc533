/** Dialog that grants access: to an entitlement of the catalog, permanently or until a time. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { Page } from "../base/answer.ts";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { timeZone, zoneName } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";

const ALL = "?limit=200";

/** Reads a time of the zone that the page shows. The browser's own field for times would show 12 hours in some languages. */
function readMoment(text: string): string {
  return new Date(timeZone.get() === "utc" ? `${text}Z` : text).toISOString();
}

/** Loads the names that can be granted, by kind. */
function useEntitlements(place: Place): { known: boolean; groups: [title: string, names: string[]][] } {
  const slugs = useLoad<Page<{ slug: string }>>(apiPath(place, "access") + ALL).data;
  const products = useLoad<Page<{ name: string }>>(apiPath(place, "products") + ALL).data;
  const plans = useLoad<Page<{ name: string }>>(apiPath(place, "plans") + ALL).data;
  const groups: [string, string[]][] = [
    ["Access", (slugs?.items ?? []).map(({ slug }) => `access:${slug}`)],
    ["Products", (products?.items ?? []).map(({ name }) => name)],
    ["Plans", (plans?.items ?? []).map(({ name }) => name)],
  ];
  const known = slugs !== undefined && products !== undefined && plans !== undefined;
  return { known, groups: groups.filter(([, names]) => names.length > 0) };
}

export function GrantDialog({
  place,
  person,
  onClose,
}: {
  place: Place;
  person: PersonNow["person"];
  onClose: () => void;
}): View {
  const { known, groups } = useEntitlements(place);
  const [ends, setEnds] = useState(false);
  const { send, isSending, error } = useSend();
  const grant = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const until = ends ? readMoment(`${data.get("day")}T${data.get("clock")}`) : null;
    const reason = String(data.get("reason") ?? "").trim();
    const changes = [apiPath(place, "persons")];
    const body = {
      entitlement: String(data.get("entitlement") ?? ""),
      ...(until === null ? {} : { expiresAt: until }),
      ...(reason === "" ? {} : { reason }),
    };
    const path = apiPath(place, "persons", person.id, "grants");
    const sent = await send<{ grant: { id: string; entitlement: string } }>({
      method: "POST",
      path,
      body,
      changes,
    });
    if (sent === null) return;
    const { id, entitlement } = sent.answer.grant;
    notifyDone(`${person.email} has access to ${entitlement}.`, async () => {
      await call("DELETE", apiPath(place, "grants", id));
      for (const prefix of changes) invalidate(prefix);
    });
    onClose();
  };
  if (known && groups.length === 0) {
    return html`<${Dialog} title="Grant access" onClose=${onClose}>
      <p>There is nothing to grant yet. First create an access slug, a product or a plan in the dashboard or with <code>relay catalog set access beta '{}'</code>.</p>
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>Close</button></div><//>`;
  }
  return html`<${Dialog} title="Grant ${person.email} access" onClose=${onClose}><form class="stack" onSubmit=${grant}>
    <label class="field"><span>What</span>
      <select name="entitlement" required autofocus>${groups.map(
        ([title, names]) =>
          html`<optgroup key=${title} label=${title}>${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</optgroup>`,
      )}</select></label>
    <fieldset class="radios"><legend class="off-screen">Duration</legend>
      <label><input type="radio" name="ends" checked=${!ends} onChange=${() => setEnds(false)} />Never expires</label>
      <label><input type="radio" name="ends" checked=${ends} onChange=${() => setEnds(true)} />Expires at a time</label></fieldset>
    ${
      ends &&
      html`<label class="field"><span>Expires on</span><input name="day" type="date" required /></label>
        <label class="field"><span>At</span><input name="clock" required pattern="([01]\\d|2[0-3]):[0-5]\\d" value="00:00" inputmode="numeric" autocomplete="off" title="A time from 00:00 to 23:59" />
        <small>From 00:00 to 23:59, in ${timeZone.get() === "utc" ? "UTC" : `your time zone, ${zoneName()}`}.</small></label>`
    }
    <label class="field"><span>Reason</span><input name="reason" autocomplete="off" />
      <small>Visible with the grant.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || !known}>${isSending ? "Granting…" : "Grant"}</button></div>
  </form><//>`;
}
