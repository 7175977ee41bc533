/**
 * Hook that loads and changes an environment's settings. A change sends the version that was read, and its response
 * replaces the settings. A change waits for an earlier one, so that two switches in a row both apply.
 */
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { peek } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { useSend } from "../component/use-send.ts";

interface Settings {
  settings: SettingsView | undefined;
  /** Error of the load. */
  loadError: string | null;
  reload(): void;
  isSending: boolean;
  /** Error of the last change. */
  error: string | null;
  /**
   * Changes the fields of `input` and no others. Returns whether the service accepted them. `changes` are other
   * addresses that this makes outdated.
   */
  change(input: object, done: string, changes?: readonly string[]): Promise<boolean>;
}

interface Read {
  settings: SettingsView;
}

/** Last change of the settings by address. */
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
