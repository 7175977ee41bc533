-- What a relay's calls and events have come to, one after another: how many were ignored, found nobody, failed or were over a cap, and since
-- when. Counted in memory by the server and written here now and then; JSON, NULL for nothing yet. A save of the relay leaves it as it is.
ALTER TABLE relay ADD COLUMN fruitless TEXT;

-- When an alert's cause was over, or somebody said that it is seen to, and who; NULL while it is open. News of an end is never open.
ALTER TABLE alert ADD COLUMN resolved_at INTEGER;
ALTER TABLE alert ADD COLUMN resolved_by TEXT;
CREATE INDEX alert_open ON alert (environment_id, id) WHERE resolved_at IS NULL;
UPDATE alert SET resolved_at = at, resolved_by = 'itself' WHERE code = 'relay_recovered';
