/** The files of packaging/ for the pages on installation, byte for byte. */
import caddyfile from "../../../packaging/Caddyfile" with { type: "text" };
import caddyfileNodes from "../../../packaging/Caddyfile.nodes" with { type: "text" };
import composePostgres from "../../../packaging/compose.postgres.yaml" with { type: "text" };
import compose from "../../../packaging/compose.yaml" with { type: "text" };
import dockerfile from "../../../packaging/Dockerfile" with { type: "text" };
import kubernetesPostgres from "../../../packaging/kubernetes/postgres.yaml" with { type: "text" };
import kubernetesRestore from "../../../packaging/kubernetes/restore.yaml" with { type: "text" };
import kubernetesSqlite from "../../../packaging/kubernetes/sqlite.yaml" with { type: "text" };
import litestream from "../../../packaging/litestream.yml" with { type: "text" };
import relayEnv from "../../../packaging/relay.env" with { type: "text" };
import relayService from "../../../packaging/relay.service" with { type: "text" };
import relaySysusers from "../../../packaging/relay.sysusers" with { type: "text" };

const show = (text: string) => (): string => `\`\`\`text file\n${text.trimEnd()}\n\`\`\``;

/** The files by the name of the placeholder in a page. */
export const PACKAGING_FILLS = {
  caddyfile: show(caddyfile),
  "caddyfile-nodes": show(caddyfileNodes),
  compose: show(compose),
  "compose-postgres": show(composePostgres),
  dockerfile: show(dockerfile),
  "kubernetes-postgres": show(kubernetesPostgres),
  "kubernetes-restore": show(kubernetesRestore),
  "kubernetes-sqlite": show(kubernetesSqlite),
  litestream: show(litestream),
  "relay-env": show(relayEnv),
  "relay-service": show(relayService),
  "relay-sysusers": show(relaySysusers),
};
