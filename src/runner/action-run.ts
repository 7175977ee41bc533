/** The occasion an action is handed: the event and its person, and texts filled in from them. It decides what a path that cannot be read says. */
import type { ActionPerson, ActionResult, ActionRun } from "../action/contract.ts";
import type { EventToRun } from "../event/event-row.ts";
import type { Json, JsonObject } from "../ground/json.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { renderData, renderIdentifier, renderTemplate } from "../template/template.ts";

interface Occasion {
  relay: LiveRelay;
  event: EventToRun;
  /** As the event is mapped now. */
  payload: JsonObject;
  person: ActionPerson | null;
  results: readonly ActionResult[];
  nowMs: number;
  limits: RaisableLimits;
  /** Takes a sentence for the event's warnings. */
  warn: (sentence: string) => void;
}

export function makeActionRun({ relay, event, payload, person, ...occasion }: Occasion): ActionRun {
  const { warn } = occasion;
  const truncated = event.truncated === 1;
  const form = event.form === 1;
  const scope: JsonObject = { ...payload };
  if (person !== null) scope.person = { id: person.id, email: person.email };
  const onMissing = (path: string): void => warn(tellMissing(path, truncated));
  return {
    environmentId: relay.environmentId,
    appId: relay.appId,
    local: relay.local,
    nowMs: occasion.nowMs,
    relay: { id: relay.id, name: relay.name },
    event: { id: event.id, trigger: event.trigger, payload, truncated },
    person,
    results: occasion.results,
    render: (text) => renderTemplate(text, scope, onMissing, form),
    renderRef: (text) => renderIdentifier(text, scope, form),
    renderData: (value: Json) => renderData(value, scope, onMissing, form),
    warn,
    signingSecret: relay.signingSecret,
    limits: occasion.limits,
  };
}

/** What was there and is cut away is not the same as what never was. */
function tellMissing(path: string, truncated: boolean): string {
  if (truncated && path.startsWith("event.")) {
    return `{{${path}}} can no longer be read and was left empty: the event is larger than 32 KB, so only its mapped values are kept; name the path in the map.`;
  }
  return `{{${path}}} names nothing in this event and was left empty.`;
}
