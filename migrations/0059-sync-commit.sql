-- The git commit of the folder whose sync brought the item, or that an approval was asked for; NULL: it is unknown.
ALTER TABLE synced ADD COLUMN source_commit TEXT;
ALTER TABLE approval ADD COLUMN source_commit TEXT;
