-- Lineage of tasks, and the indexes for questions that wait and for operators.

-- A task that another one's turn has started has its parent and the root of its tree, by key; keys are never used twice, so
-- both may outlive what they name. The payer is absent where it is the owner. via: 0 A2A, 1 API, 2 cron, 3 route, 4 channel.
ALTER TABLE task ADD COLUMN parent INTEGER;
ALTER TABLE task ADD COLUMN root INTEGER;
ALTER TABLE task ADD COLUMN payer INTEGER;
ALTER TABLE task ADD COLUMN via INTEGER NOT NULL DEFAULT 0;

-- A root that came over A2A costs these nothing.
CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL;
CREATE INDEX task_root ON task (root) WHERE root IS NOT NULL;
CREATE INDEX task_via ON task (via) WHERE via > 0;
-- Open questions, oldest first. With owner and agent, so that a caller's own are found without reading the others' rows.
CREATE INDEX task_waiting ON task (status_at, key, owner, agent) WHERE state IN (6, 8);
