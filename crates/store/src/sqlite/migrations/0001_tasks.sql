-- Tasks, their event logs, idempotency keys, counters and API keys.

-- Callers and agents by number, so that every index on them holds small integers.
CREATE TABLE name (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

-- One row per task. Ids and contexts are 16 bytes where they are UUIDs in the usual spelling, else text.
-- Keys are given by the writer and never used twice, so that a stale key can never name another task.
CREATE TABLE task (
    key          INTEGER PRIMARY KEY,
    id           NOT NULL,
    owner        INTEGER NOT NULL,
    agent        INTEGER NOT NULL,
    context      NOT NULL,
    state        INTEGER NOT NULL,
    status_at    INTEGER NOT NULL,
    phase        INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    lease        INTEGER,
    expires_at   INTEGER,
    hidden       INTEGER NOT NULL,
    recoveries   INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    first_row    INTEGER,
    snapshot_row INTEGER,
    bytes        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
);

-- A task that is created and done in one append, 32 of them to a commit, costs 11.5 to 12 µs of one core, of which the
-- listing index and the context index take about 1 each (examples/write_cost.rs). An index of this kind costs about as much wherever
-- it is added, mostly in pages written to the log and moved from there into the file.
CREATE UNIQUE INDEX task_id ON task (id);
-- Lists, and the oldest ended tasks for eviction: both merge the (owner, agent, state) groups that the tally knows.
CREATE INDEX task_listing ON task (owner, agent, state, status_at) WHERE hidden = 0;
CREATE INDEX task_context ON task (context, owner, status_at) WHERE hidden = 0;
-- The next three hold only rows that are alive or hidden, so a finished task costs them nothing.
CREATE INDEX task_unfinished ON task (key) WHERE phase < 3;
CREATE INDEX task_expiring ON task (expires_at) WHERE expires_at IS NOT NULL AND phase < 4;
CREATE INDEX task_hidden ON task (status_at) WHERE hidden = 1;

-- One row per task and commit, holding that commit's events one JSON line each. Rows are only ever inserted, and
-- the snapshot of an append rides on its row. Ids are given by the writer, rise with commits and are never used twice.
CREATE TABLE event (
    id        INTEGER PRIMARY KEY,
    task_key  INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    blob      BLOB NOT NULL,
    snapshot  BLOB
);
-- A task's first row is found through task.first_row, so that a task of one commit needs no entry here, which saves about 1 µs.
CREATE UNIQUE INDEX event_task ON event (task_key, first_seq) WHERE first_seq > 1;

-- What was accepted under an idempotency key.
CREATE TABLE send (
    owner    INTEGER NOT NULL,
    address  TEXT NOT NULL,
    key      TEXT NOT NULL,
    digest   BLOB NOT NULL,
    task_key INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (owner, address, key)
) WITHOUT ROWID;
CREATE INDEX send_task ON send (task_key);

-- Exact numbers of tasks, kept by the writer in the transactions that change them.
CREATE TABLE tally (
    owner  INTEGER NOT NULL,
    agent  INTEGER NOT NULL,
    state  INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (owner, agent, state, hidden, parked)
) WITHOUT ROWID;

CREATE TABLE api_key (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    prefix     TEXT NOT NULL,
    digest     BLOB NOT NULL UNIQUE,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID;
