-- The memory of keys that are each spent once (see src/store/key-log.ts). A key is the first 52 bits of its hash; with it stands the number of
-- the row it was kept for, both as 64-bit numbers, the smallest byte first.

-- One row a transaction that kept keys, in their order.
CREATE TABLE key_recent (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
);

-- Keys that were taken out of the log, never changed; `newest` is the greatest number any of them was kept for.
CREATE TABLE key_run (
  run INTEGER PRIMARY KEY,
  newest INTEGER NOT NULL,
  pieces INTEGER NOT NULL,
  -- Tells which keys are surely not in the run.
  filter BLOB NOT NULL
);

-- A run's keys by their first bits: id is run * 2^20 + piece.
CREATE TABLE key_piece (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
);
