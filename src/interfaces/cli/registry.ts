/** Lists every command, in the groups and the order of help. */

import { catalogDelete, catalogList, catalogSet } from "./catalog/catalog.ts";
import { filesDelete, filesDownload, filesList, filesUpload } from "./catalog/files.ts";
import { receiptsMove } from "./catalog/receipt-move.ts";
import { receiptsRecord } from "./catalog/receipt-record.ts";
import { receiptsList, receiptsRefund } from "./catalog/receipts.ts";
import { recordsDelete, recordsSet } from "./catalog/record-edit.ts";
import { recordsList, recordsShow } from "./catalog/records.ts";
import { changes } from "./changes.ts";
import type { Command } from "./command.ts";
import { docs } from "./docs.ts";
import {
  alertsAddChannel,
  alertsChannels,
  alertsRemoveChannel,
  alertsSetChannel,
  alertsTestChannel,
} from "./environment/alert-channels.ts";
import { alertsList, alertsResolve, problemsList } from "./environment/alerts.ts";
import { adminAudit, auditList } from "./environment/audit.ts";
import { domainRemove, domainSet, domainShow, domainVerify } from "./environment/domain.ts";
import { emailsList, emailsResend, emailsStopped, emailsTest } from "./environment/emails.ts";
import { keysCreate, keysList, keysRevoke } from "./environment/keys.ts";
import { limitsList } from "./environment/limits.ts";
import { settingsGet, settingsSet } from "./environment/settings.ts";
import { replaysList, replaysStart, replaysStop, replaysWait } from "./events/bulk-replay.ts";
import { requestsList, requestsShow, requestsTail } from "./events/calls.ts";
import { eventsExpunge, eventsList, eventsShow, eventsTail } from "./events/events.ts";
import { importEvents } from "./events/import-missed.ts";
import { eventsReplay } from "./events/replay.ts";
import { eventsRetry, relaysRetry } from "./events/retry.ts";
import { send } from "./events/send.ts";
import { simulate } from "./events/simulate.ts";
import { licenses } from "./licenses.ts";
import { completion } from "./line/completion.ts";
import type { Group } from "./line/help.ts";
import { peopleChangeAddress } from "./people/change-address.ts";
import { peopleCredits } from "./people/credits.ts";
import { peopleLink, peopleUnlink } from "./people/customer.ts";
import { peopleEnd } from "./people/end.ts";
import { peopleGrant } from "./people/grant.ts";
import { peopleInvite } from "./people/invite.ts";
import { peopleAllowMail, peopleStopMail } from "./people/mail.ts";
import { peopleMerge } from "./people/merge.ts";
import { peopleList, peopleShow } from "./people/people.ts";
import { peopleSet } from "./people/set.ts";
import { peopleActivate, peopleSuspend } from "./people/suspend.ts";
import { peopleAddToken, peopleRemoveToken } from "./people/token.ts";
import { capture } from "./relays/capture.ts";
import { relaysCases } from "./relays/cases.ts";
import { relaysDelete } from "./relays/delete.ts";
import { guess } from "./relays/guess.ts";
import { relaysRejected } from "./relays/rejected.ts";
import {
  relaysChecklist,
  relaysFunnel,
  relaysList,
  relaysPause,
  relaysResume,
  relaysShow,
} from "./relays/relays.ts";
import { relaysEndOverlap, relaysRotateSecret, relaysSetSecret } from "./relays/secrets.ts";
import { relaysSkipped } from "./relays/skipped.ts";
import { verifiers } from "./relays/verifiers.ts";
import { relaysHistory, relaysRestore } from "./relays/versions.ts";
import { adminCreate, adminList, adminRemove, adminReset, adminSignOut } from "./server/admin.ts";
import { appsCreate, appsDelete, appsList, appsRename } from "./server/apps.ts";
import { backup, restore } from "./server/backup.ts";
import { backupsCopy, backupsList } from "./server/backup-copy.ts";
import { backupsEndpoint } from "./server/backup-endpoint.ts";
import { backupsSchedule } from "./server/backup-schedule.ts";
import { showConfig } from "./server/config.ts";
import { dev } from "./server/dev.ts";
import { doctor } from "./server/doctor.ts";
import {
  membersChange,
  membersInvite,
  membersList,
  membersRemove,
  membersRequireFactor,
  membersResend,
  membersResetFactor,
  membersUnlink,
} from "./server/members.ts";
import { move } from "./server/move.ts";
import { oidcPasswords, oidcProvider } from "./server/oidc.ts";
import { ready } from "./server/ready.ts";
import { serve } from "./server/serve.ts";
import { upgrade } from "./server/upgrade.ts";
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
    lines: [
      { summary: "write a first relay, or list the known senders", commands: [init, presets] },
      { summary: "run relays here, send an example, and play a sale", commands: [dev, send, simulate] },
      { summary: "check definition files, and verify calls", commands: [validate, schema, verifiers] },
      { summary: "read the docs and changes, find a newer release", commands: [docs, changes, upgrade] },
      { summary: "complete commands in a shell, and list licenses", commands: [completion, licenses] },
    ],
  },
  {
    title: "Every day",
    lines: [
      {
        summary: "list, pause and retry relays, and rotate secrets",
        commands: [
          relaysList,
          relaysShow,
          relaysFunnel,
          relaysChecklist,
          relaysCases,
          relaysRejected,
          relaysSkipped,
          relaysPause,
          relaysResume,
          relaysRetry,
          relaysDelete,
          relaysHistory,
          relaysRestore,
          relaysRotateSecret,
          relaysSetSecret,
          relaysEndOverlap,
        ],
      },
      {
        summary: "show, retry and replay events, one or many",
        commands: [
          eventsList,
          eventsShow,
          eventsReplay,
          eventsRetry,
          eventsExpunge,
          eventsTail,
          replaysStart,
          replaysList,
          replaysWait,
          replaysStop,
        ],
      },
      {
        summary: "show requests without an event, capture new ones",
        commands: [requestsList, requestsShow, requestsTail, capture, guess],
      },
      {
        summary: "show what is wrong, and who changed what",
        commands: [
          problemsList,
          alertsList,
          alertsResolve,
          alertsChannels,
          alertsAddChannel,
          alertsSetChannel,
          alertsTestChannel,
          alertsRemoveChannel,
          auditList,
        ],
      },
      {
        summary: "manage people, their access and their mail",
        commands: [
          peopleList,
          peopleShow,
          peopleInvite,
          peopleGrant,
          peopleEnd,
          peopleMerge,
          peopleChangeAddress,
          peopleCredits,
          peopleSet,
          peopleSuspend,
          peopleActivate,
          peopleAddToken,
          peopleRemoveToken,
          peopleLink,
          peopleUnlink,
          peopleStopMail,
          peopleAllowMail,
          emailsList,
          emailsStopped,
          emailsResend,
          emailsTest,
        ],
      },
      {
        summary: "manage the records and files of collections",
        commands: [
          recordsList,
          recordsShow,
          recordsSet,
          recordsDelete,
          filesList,
          filesUpload,
          filesDownload,
          filesDelete,
        ],
      },
      {
        summary: "list purchases, and record payments and refunds",
        commands: [receiptsList, receiptsRecord, receiptsRefund, receiptsMove],
      },
    ],
  },
  {
    title: "Set up",
    lines: [
      { summary: "sign in to a server elsewhere", commands: [login, whoami, logout] },
      { summary: "compare and deploy definition files", commands: [status, sync, promote, pull] },
      {
        summary: "manage access, products, plans and collections",
        commands: [catalogList, catalogSet, catalogDelete],
      },
      {
        summary: "change settings and the mail domain, list limits",
        commands: [settingsGet, settingsSet, limitsList, domainShow, domainSet, domainVerify, domainRemove],
      },
      {
        summary: "manage keys and members, connect an assistant",
        commands: [
          keysCreate,
          keysList,
          keysRevoke,
          membersList,
          membersInvite,
          membersChange,
          membersRemove,
          membersResend,
          membersResetFactor,
          membersUnlink,
          membersRequireFactor,
          oidcProvider,
          oidcPasswords,
          mcp,
        ],
      },
    ],
  },
  {
    title: "Operate",
    lines: [
      { summary: "run a server, and show its configuration", commands: [serve, ready, showConfig] },
      { summary: "copy, restore and move the database", commands: [backup, restore, move] },
      { summary: "check an installation, and import missed events", commands: [doctor, importEvents] },
      {
        summary: "manage apps, owners and backups of a server",
        commands: [
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
          backupsList,
          backupsCopy,
          backupsEndpoint,
          backupsSchedule,
        ],
      },
    ],
  },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ lines }) =>
  lines.flatMap(({ commands }) => commands),
);
