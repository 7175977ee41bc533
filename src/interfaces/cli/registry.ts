/** Lists every command, in the groups and the order of help. */

import { catalogDelete, catalogList, catalogSet } from "./catalog/catalog.ts";
import { filesDelete, filesDownload, filesList, filesUpload } from "./catalog/files.ts";
import { receiptsRecord } from "./catalog/receipt-record.ts";
import { receiptsList, receiptsRefund } from "./catalog/receipts.ts";
import { recordsDelete, recordsSet } from "./catalog/record-edit.ts";
import { recordsList, recordsShow } from "./catalog/records.ts";
import { changes } from "./changes.ts";
import type { Command } from "./command.ts";
import { docs } from "./docs.ts";
import { alertsList, alertsResolve, problemsList } from "./environment/alerts.ts";
import { adminAudit, auditList } from "./environment/audit.ts";
import { domainRemove, domainSet, domainShow, domainVerify } from "./environment/domain.ts";
import { emailsList, emailsSendAgain, emailsStopped, emailsTest } from "./environment/emails.ts";
import { keysCreate, keysList, keysRevoke } from "./environment/keys.ts";
import { settingsGet, settingsSet } from "./environment/settings.ts";
import { replaysList, replaysStart, replaysStop } from "./events/bulk-replay.ts";
import { callsList, callsShow, callsTail } from "./events/calls.ts";
import { eventsExpunge, eventsList, eventsShow, eventsTail } from "./events/events.ts";
import { importEvents } from "./events/import-missed.ts";
import { eventsReplay } from "./events/replay.ts";
import { eventsRetry, relaysRetry } from "./events/retry.ts";
import { send } from "./events/send.ts";
import { licenses } from "./licenses.ts";
import { completion } from "./line/completion.ts";
import type { Group } from "./line/help.ts";
import { peopleCredits } from "./people/credits.ts";
import { peopleEnd } from "./people/end.ts";
import { peopleGrant } from "./people/grant.ts";
import { peopleInvite } from "./people/invite.ts";
import { peopleAllowMail, peopleStopMail } from "./people/mail.ts";
import { peopleList, peopleShow } from "./people/people.ts";
import { peopleSet } from "./people/set.ts";
import { peopleActivate, peopleSuspend } from "./people/suspend.ts";
import { peopleFileToken, peopleRemoveToken } from "./people/token.ts";
import { relaysDelete } from "./relays/delete.ts";
import { relaysFunnel, relaysList, relaysPause, relaysResume, relaysShow } from "./relays/relays.ts";
import { relaysEndOverlap, relaysRotateSecret, relaysSetSecret } from "./relays/secrets.ts";
import { relaysHistory, relaysRestore } from "./relays/versions.ts";
import { adminCreate, adminList, adminRemove, adminReset, adminSignOut } from "./server/admin.ts";
import { appsCreate, appsDelete, appsList, appsRename } from "./server/apps.ts";
import { backup, restore } from "./server/backup.ts";
import { showConfig } from "./server/config.ts";
import { dev } from "./server/dev.ts";
import { doctor } from "./server/doctor.ts";
import { move } from "./server/move.ts";
import { ready } from "./server/ready.ts";
import { serve } from "./server/serve.ts";
import { login, logout } from "./session/login.ts";
import { mcp } from "./session/mcp.ts";
import { whoami } from "./session/whoami.ts";
import { init, schema } from "./sync/init.ts";
import { presets } from "./sync/presets.ts";
import { promote } from "./sync/promote.ts";
import { pull } from "./sync/pull.ts";
import { status } from "./sync/status.ts";
import { sync } from "./sync/sync.ts";
import { validate } from "./sync/validate.ts";

/** The groups of commands in help, by purpose. */
export const GROUPS: readonly Group[] = [
  {
    title: "Get started",
    commands: [init, presets, dev, send, validate, schema, docs, changes, licenses, completion],
  },
  {
    title: "Every day",
    commands: [
      relaysList,
      relaysShow,
      relaysFunnel,
      relaysPause,
      relaysResume,
      relaysRetry,
      relaysDelete,
      eventsList,
      eventsShow,
      eventsReplay,
      eventsRetry,
      eventsExpunge,
      eventsTail,
      replaysStart,
      replaysList,
      replaysStop,
      callsList,
      callsShow,
      callsTail,
      problemsList,
      alertsList,
      alertsResolve,
      peopleList,
      peopleShow,
      peopleInvite,
      peopleGrant,
      peopleEnd,
      peopleCredits,
      peopleSet,
      peopleSuspend,
      peopleActivate,
      peopleFileToken,
      peopleRemoveToken,
      peopleStopMail,
      peopleAllowMail,
      emailsList,
      emailsStopped,
      emailsSendAgain,
      recordsList,
      recordsShow,
      recordsSet,
      recordsDelete,
      filesList,
      filesUpload,
      filesDownload,
      filesDelete,
      receiptsList,
      receiptsRecord,
      receiptsRefund,
      auditList,
    ],
  },
  {
    title: "Set up",
    commands: [
      login,
      whoami,
      logout,
      status,
      sync,
      promote,
      pull,
      relaysHistory,
      relaysRestore,
      relaysRotateSecret,
      relaysSetSecret,
      relaysEndOverlap,
      catalogList,
      catalogSet,
      catalogDelete,
      settingsGet,
      settingsSet,
      domainShow,
      domainSet,
      domainVerify,
      domainRemove,
      emailsTest,
      keysCreate,
      keysList,
      keysRevoke,
      mcp,
    ],
  },
  {
    title: "Operate",
    commands: [
      serve,
      ready,
      doctor,
      backup,
      restore,
      move,
      importEvents,
      appsCreate,
      appsList,
      appsRename,
      appsDelete,
      adminCreate,
      adminReset,
      adminList,
      adminAudit,
      adminSignOut,
      adminRemove,
      showConfig,
    ],
  },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);
