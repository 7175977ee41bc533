/** An environment's settings as they are shown and changed: a change carries the version that was read, and its answer takes the place of it. */
import type { SettingsView } from "../../src/setting/setting.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { useSend } from "../part/use-send.ts";

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

export function useSettings(place: Place): Settings {
  const path = apiPath(place, "settings");
  const { data, error: loadError, reload, put } = useLoad<{ settings: SettingsView }>(path);
  const { send, isSending, error } = useSend();
  return {
    settings: data?.settings,
    loadError,
    reload,
    isSending,
    error,
    async change(input, done, changes = []) {
      const body = { version: data?.settings.version, ...input };
      const sent = await send<{ settings: SettingsView }>({ method: "PUT", path, body, done, changes });
      if (sent === null) reload();
      else put(sent.answer);
      return sent !== null;
    },
  };
}
