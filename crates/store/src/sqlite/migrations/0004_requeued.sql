-- A turn that had begun and waits for a slot to go on has a phase of its own, -1. Until now it was told from one that had
-- not begun by its recoveries, which count lost processes only from now on.
UPDATE task SET phase = -1 WHERE phase = 0 AND recoveries > 0;
