-- Erasures: what keeps an erased address from coming back, and what is still to be expunged.
CREATE TABLE erasure (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  -- A keyed hash of the address as addresses are compared.
  email_digest BLOB NOT NULL,
  -- Events up to this one arrived before the erasure.
  event_seq INTEGER NOT NULL,
  -- What is looked for, sealed; NULL once nothing of it is left.
  sought BLOB,
  erased_at INTEGER NOT NULL
);

CREATE INDEX erasure_by_email ON erasure (environment_id, email_digest);
CREATE INDEX erasure_open ON erasure (seq) WHERE sought IS NOT NULL;

-- Files that the person's records named; those no other record names go at the end.
CREATE TABLE erasure_file (
  erasure_seq INTEGER NOT NULL,
  file_id TEXT NOT NULL,
  PRIMARY KEY (erasure_seq, file_id)
) WITHOUT ROWID;
