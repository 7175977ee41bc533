/** Why a backup or a restore was not made: one sentence for the person who asked for it. */
export class BackupRefused extends Error {}
