-- Whether a trigger of records fires is asked for every row: what the server knows by itself is quicker asked than a function of ours.
DROP TRIGGER record_change_created ON record;
CREATE TRIGGER record_change_created AFTER INSERT ON record
FOR EACH ROW WHEN (coalesce(current_setting('relay.captured', true), '') <> '0') EXECUTE FUNCTION record_change_created();
DROP TRIGGER record_change_deleted ON record;
CREATE TRIGGER record_change_deleted AFTER DELETE ON record
FOR EACH ROW WHEN (coalesce(current_setting('relay.captured', true), '') <> '0') EXECUTE FUNCTION record_change_deleted();
DROP TRIGGER record_change_updated ON record;
CREATE TRIGGER record_change_updated AFTER UPDATE ON record
FOR EACH ROW WHEN (coalesce(current_setting('relay.captured', true), '') <> '0' AND (NEW.data IS DISTINCT FROM OLD.data OR NEW.owner_id IS DISTINCT FROM OLD.owner_id
  OR NEW.recipient_id IS DISTINCT FROM OLD.recipient_id)) EXECUTE FUNCTION record_change_updated();
-- 0.9.0 made new databases without it.
DROP FUNCTION IF EXISTS is_captured();

DROP TRIGGER record_file_created ON record;
CREATE TRIGGER record_file_created AFTER INSERT ON record
FOR EACH ROW WHEN (strpos(NEW.data, '"fil_') > 0) EXECUTE FUNCTION record_file_changed();
DROP TRIGGER record_file_changed ON record;
CREATE TRIGGER record_file_changed AFTER UPDATE OF data ON record
FOR EACH ROW WHEN (strpos(OLD.data, '"fil_') > 0 OR strpos(NEW.data, '"fil_') > 0) EXECUTE FUNCTION record_file_changed();
DROP TRIGGER record_file_deleted ON record;
CREATE TRIGGER record_file_deleted AFTER DELETE ON record
FOR EACH ROW WHEN (strpos(OLD.data, '"fil_') > 0) EXECUTE FUNCTION record_file_changed();
