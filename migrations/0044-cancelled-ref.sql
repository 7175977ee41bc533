-- The ref under which revoke_plan ended it: whoever cancels under it again speaks of this one. Null: it was ended otherwise, by an earlier version, or it goes on.
ALTER TABLE subscription ADD COLUMN ended_ref TEXT;
