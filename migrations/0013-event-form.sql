-- 1 when the body was a form, in which a literal dotted name wins over the path; NULL where that is not known, as in older rows.
ALTER TABLE event ADD COLUMN form INTEGER;
