-- Equal calls that come one after another are one row: when the first of them came. `count` says how many they are.
ALTER TABLE recent_call ADD COLUMN first_at INTEGER NOT NULL DEFAULT 0;
UPDATE recent_call SET first_at = at;
