-- Events that ended later came to it after it was counted: a bulk replay takes what had failed when it began.
ALTER TABLE bulk_replay ADD COLUMN ended_until INTEGER NOT NULL DEFAULT 9007199254740991;
