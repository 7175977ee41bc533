/** Every command, one line each, in the groups and the order that help shows them. */
import { adminCreate, adminList, adminRemove, adminReset, adminSignOut } from "./admin.ts";
import { alertsList, alertsResolve, problemsList } from "./alerts.ts";
import { appsCreate, appsDelete, appsList, appsRename } from "./apps.ts";
import { adminAudit, auditList } from "./audit.ts";
import { backup, restore } from "./backup.ts";
import { callsList, callsShow, callsTail } from "./calls.ts";
import { catalogDelete, catalogList, catalogSet } from "./catalog.ts";
import { changes } from "./changes.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { dev } from "./dev.ts";
import { docs } from "./docs.ts";
import { doctor } from "./doctor.ts";
import { domainRemove, domainSet, domainShow, domainVerify } from "./domain.ts";
import { emailsList, emailsSendAgain, emailsStopped, emailsTest } from "./emails.ts";
import { eventsReplay } from "./event-replay.ts";
import { eventsRetry, relaysRetry } from "./event-retry.ts";
import { eventsExpunge, eventsList, eventsShow, eventsTail } from "./events.ts";
import { filesDelete, filesDownload, filesList, filesUpload } from "./files.ts";
import type { Group } from "./help.ts";
import { importEvents } from "./import-missed.ts";
import { init, schema } from "./init.ts";
import { keysCreate, keysList, keysRevoke } from "./keys.ts";
import { licenses } from "./licenses.ts";
import { login, logout } from "./login.ts";
import { mcp } from "./mcp.ts";
import { move } from "./move.ts";
import { peopleList, peopleShow } from "./people.ts";
import { peopleCredits } from "./people-credits.ts";
import { peopleEnd } from "./people-end.ts";
import { peopleGrant } from "./people-grant.ts";
import { peopleInvite } from "./people-invite.ts";
import { peopleAllowMail, peopleStopMail } from "./people-mail.ts";
import { peopleSet } from "./people-set.ts";
import { peopleActivate, peopleSuspend } from "./people-suspend.ts";
import { peopleFileToken, peopleRemoveToken } from "./people-token.ts";
import { presets } from "./presets.ts";
import { promote } from "./promote.ts";
import { pull } from "./pull.ts";
import { ready } from "./ready.ts";
import { receiptsRecord } from "./receipt-record.ts";
import { receiptsList, receiptsRefund } from "./receipts.ts";
import { recordsDelete, recordsSet } from "./record-edit.ts";
import { recordsList, recordsShow } from "./records.ts";
import { relaysDelete } from "./relay-delete.ts";
import { relaysEndOverlap, relaysRotateSecret, relaysSetSecret } from "./relay-secrets.ts";
import { relaysHistory, relaysRestore } from "./relay-versions.ts";
import { relaysFunnel, relaysList, relaysPause, relaysResume, relaysShow } from "./relays.ts";
import { replaysList, replaysStart, replaysStop } from "./replays.ts";
import { send } from "./send.ts";
import { serve } from "./serve.ts";
import { settingsGet, settingsSet } from "./settings.ts";
import { showConfig } from "./show-config.ts";
import { status } from "./status.ts";
import { sync } from "./sync.ts";
import { validate } from "./validate.ts";
import { whoami } from "./whoami.ts";

/** The commands as help lists them, by what one is about to do. */
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
