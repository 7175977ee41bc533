-- The time when the person of a session last proved a second factor. NULL: not in this session, or in a version that did not record this.
ALTER TABLE session ADD COLUMN factor_at bigint;
