-- An app that was deleted: at once nobody's, then emptied in steps; what stays is a row without a name that keeps the environments' numbers from being given again.
ALTER TABLE app ADD COLUMN deleted_at INTEGER;
ALTER TABLE app ADD COLUMN deleted_by TEXT;
ALTER TABLE app ADD COLUMN emptied_at INTEGER;
ALTER TABLE environment ADD COLUMN deleted_at INTEGER;
