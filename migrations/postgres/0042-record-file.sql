-- A text that only begins like a file's id names none: it was kept in an index all the same, which refuses what is longer than a third of a page.
CREATE OR REPLACE FUNCTION record_file_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM record_file WHERE record_seq = OLD.seq;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO record_file (file_id, record_seq)
    SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
    WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_' AND octet_length(held.atom) = 36 ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
DELETE FROM record_file WHERE octet_length(file_id) <> 36;
