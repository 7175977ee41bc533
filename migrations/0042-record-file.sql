-- A text that only begins like a file's id names none: it was kept in an index all the same, which PostgreSQL refuses where the text is long.
DROP TRIGGER record_file_created;
DROP TRIGGER record_file_changed;
CREATE TRIGGER record_file_created AFTER INSERT ON record
WHEN instr(NEW.data, '"fil_') > 0
BEGIN
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_' AND octet_length(held.atom) = 36;
END;
CREATE TRIGGER record_file_changed AFTER UPDATE OF data ON record
WHEN instr(OLD.data, '"fil_') > 0 OR instr(NEW.data, '"fil_') > 0
BEGIN
  DELETE FROM record_file WHERE record_seq = OLD.seq;
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_' AND octet_length(held.atom) = 36;
END;
DELETE FROM record_file WHERE octet_length(file_id) <> 36;
