-- What a task says to later ones of its conversation: a small JSON text, replaced with every note.
ALTER TABLE task ADD COLUMN note TEXT;
