-- The environment that the definition was promoted from, and as which version; NULL: it was saved, or came from a file. Where the relay has another
-- version by now, a node that knows nothing of this saved it since.
ALTER TABLE relay ADD COLUMN promoted_from text COLLATE "C";
ALTER TABLE relay ADD COLUMN promoted_version bigint;
