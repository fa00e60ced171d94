-- Lineage of tasks, the indexes for questions that wait and for operators, the journal, and what consumers of the log keep.

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

-- What happened outside of tasks. Ids are of one sequence with those of event rows, so that both have one order.
CREATE TABLE journal (
    id      INTEGER PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    owner   INTEGER,
    task,
    topic   TEXT NOT NULL,
    payload BLOB NOT NULL
);
-- Lines of the audit are kept longer than the others.
CREATE INDEX journal_age ON journal (topic GLOB 'audit.*', at);

-- Readers of all rows. Without a cursor before the first page, and for those that read none.
CREATE TABLE consumer (
    name  TEXT NOT NULL UNIQUE,
    fence INTEGER NOT NULL,
    epoch INTEGER,
    major INTEGER,
    row   INTEGER,
    seq   INTEGER,
    state BLOB NOT NULL
);

-- Work that is owed at a time. The node is that of its last claim.
CREATE TABLE job (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    kind     TEXT NOT NULL,
    run_at   INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    node     INTEGER,
    body     BLOB NOT NULL
);
CREATE INDEX job_due ON job (run_at);

-- Until when an append that names the key is refused.
CREATE TABLE cooldown (
    key   TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX cooldown_until ON cooldown (until);

-- Definitions that were made at run time. One that was deleted has no body and keeps its version, so that a version never
-- comes twice.
CREATE TABLE registration (
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    owner   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    BLOB,
    PRIMARY KEY (kind, name)
);

-- Sums of outcomes. step: 0 minute, 1 hour. by: 0 all, 1 skill, 2 caller.
CREATE TABLE health (
    step  INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    by    INTEGER NOT NULL,
    name  TEXT NOT NULL,
    sum   BLOB NOT NULL,
    PRIMARY KEY (step, at, agent, by, name)
) WITHOUT ROWID;
