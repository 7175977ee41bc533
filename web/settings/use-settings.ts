/**
 * An environment's settings as they are shown and changed: a change carries the version that was read, and its answer takes the place of it.
 * What is changed while another change is on its way waits for its answer, so that two switches in a row are two changes.
 */
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { peek } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { useSend } from "../component/use-send.ts";

interface Settings {
  settings: SettingsView | undefined;
  /** Why they could not be loaded. */
  loadError: string | null;
  reload(): void;
  isSending: boolean;
  /** Why the last change was refused. */
  error: string | null;
  /** What is absent of `input` stays; answers whether it was taken. `changes`: what else is out of date then. */
  change(input: object, done: string, changes?: readonly string[]): Promise<boolean>;
}

interface Read {
  settings: SettingsView;
}

/** The last change of the settings at each address. */
const changing = new Map<string, Promise<boolean>>();

export function useSettings(place: Place): Settings {
  const path = apiPath(place, "settings");
  const { data, error: loadError, reload, put } = useLoad<Read>(path);
  const { send, isSending, error } = useSend();
  return {
    settings: data?.settings,
    loadError,
    reload,
    isSending,
    error,
    change(input, done, changes = []) {
      const before = changing.get(path);
      const make = async (): Promise<boolean> => {
        await before;
        const known = peek(path).data as Read | undefined;
        const body = { version: known?.settings.version, ...input };
        const sent = await send<Read>({ method: "PUT", path, body, done, changes });
        if (sent === null) reload();
        else put(sent.answer);
        return sent !== null;
      };
      const made = make();
      changing.set(path, made);
      return made;
    },
  };
}
