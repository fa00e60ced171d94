-- Everything alive, parked tasks too, for operators who look at the tasks of all callers. It stands for what the index of
-- unfinished tasks was for as well; a task that parks and goes on changes no entry of it.
DROP INDEX task_unfinished;
CREATE INDEX task_live ON task (key) WHERE phase < 4;
