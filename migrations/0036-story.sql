-- When a grant ended or will: what a person's story is walked by.
ALTER TABLE access_grant ADD COLUMN end_at INTEGER
  GENERATED ALWAYS AS (min(coalesce(revoked_at, expires_at), coalesce(expires_at, revoked_at))) VIRTUAL;
CREATE INDEX access_grant_by_end ON access_grant (person_id, end_at, id) WHERE end_at IS NOT NULL;
-- The event that wrote the record last; NULL: no event did, or an earlier version.
ALTER TABLE record ADD COLUMN event_id TEXT;
