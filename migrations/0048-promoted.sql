-- The environment that the definition was promoted from with its last save; NULL: it was saved, or came from a file.
ALTER TABLE relay ADD COLUMN promoted_from TEXT;
