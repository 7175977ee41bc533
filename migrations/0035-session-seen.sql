-- Where and when a session was last used, so that its owner knows which to end.
ALTER TABLE session ADD COLUMN seen_at INTEGER;
ALTER TABLE session ADD COLUMN source TEXT;
ALTER TABLE session ADD COLUMN agent TEXT;
CREATE INDEX session_by_owner ON session (owner_id, expires_at);
