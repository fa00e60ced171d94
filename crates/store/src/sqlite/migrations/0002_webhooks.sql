-- Webhooks with their deliveries, and callbacks with the updates that came in through them.

-- How many webhooks a task has, so that an append to one without any looks no further.
ALTER TABLE task ADD COLUMN webhooks INTEGER NOT NULL DEFAULT 0;

-- One row per webhook. Keys are given by the writer and never used twice. The id, owner and agent of the task are here too
-- because dead letters outlive it. Endpoints have no numbers: callers choose them, and names are kept for good.
-- state: 0 active, 1 paused, 2 disabled, 3 finished.
CREATE TABLE webhook (
    key        INTEGER PRIMARY KEY,
    task_key   INTEGER NOT NULL,
    task       NOT NULL,
    owner      INTEGER NOT NULL,
    agent      INTEGER NOT NULL,
    id         TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    cursor     INTEGER NOT NULL,
    late       INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    began_at   INTEGER NOT NULL,
    form       INTEGER NOT NULL,
    revision   INTEGER NOT NULL DEFAULT 1,
    -- The revision since which it goes to the same address in the same form.
    moved      INTEGER NOT NULL DEFAULT 1,
    -- Those in the state delivered, and those that were and are no longer kept.
    delivered  INTEGER NOT NULL DEFAULT 0,
    config     TEXT NOT NULL
);
CREATE UNIQUE INDEX webhook_task ON webhook (task_key, id);
CREATE INDEX webhook_task_id ON webhook (task);
-- A webhook that has come to its end costs this nothing.
CREATE INDEX webhook_open ON webhook (key) WHERE state < 2;
-- Few are, and an operator who looks for them should not walk through all others.
CREATE INDEX webhook_disabled ON webhook (key) WHERE state = 2;

-- One row per delivery; the body last, so that the rest is read without it. The last attempt of a dead one is its death.
-- state: 0 pending, 1 delivered, 2 dead.
CREATE TABLE delivery (
    key          INTEGER PRIMARY KEY,
    webhook      INTEGER NOT NULL,
    endpoint     TEXT NOT NULL,
    first_seq    INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    last_epoch   INTEGER NOT NULL,
    form         INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    replay       INTEGER NOT NULL,
    -- Pending and in order, while its webhook is not active.
    held         INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    -- Not earlier, whatever happens to its endpoint.
    not_before   INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    -- When its webhook had begun, which is part of its name at the endpoint: the webhook may begin again.
    began_at     INTEGER NOT NULL,
    attempted_at INTEGER,
    duration_ms  INTEGER,
    status       INTEGER,
    problem      TEXT,
    about        TEXT NOT NULL,
    body         BLOB
);
-- The history of a webhook by state, newest last.
CREATE INDEX delivery_webhook ON delivery (webhook, state);
-- All others hold only rows that are pending or dead. What comes in order is one at a time.
CREATE UNIQUE INDEX delivery_head ON delivery (webhook) WHERE state = 0 AND replay = 0;
CREATE INDEX delivery_due ON delivery (due_at) WHERE state = 0 AND held = 0;
CREATE INDEX delivery_endpoint ON delivery (endpoint, due_at, not_before) WHERE state = 0 AND replay = 0;
CREATE INDEX delivery_replay ON delivery (webhook) WHERE state = 0 AND replay = 1;
-- With the size of its body, so that adding these up reads no body.
CREATE INDEX delivery_dead ON delivery (key, length(body)) WHERE state = 2;
CREATE INDEX delivery_died ON delivery (attempted_at) WHERE state = 2;

-- The address of a task at which a remote agent tells of its work: the digest of its token.
CREATE TABLE callback (
    task_key    INTEGER PRIMARY KEY,
    digest      BLOB NOT NULL,
    next_number INTEGER NOT NULL
);

-- What came in. A body goes once it is taken; the ids of the newest stay, so that what is sent twice is known.
CREATE TABLE callback_update (
    task_key INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    id       TEXT NOT NULL,
    at       INTEGER NOT NULL,
    body     BLOB,
    PRIMARY KEY (task_key, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX callback_update_id ON callback_update (task_key, id);
CREATE INDEX callback_update_waiting ON callback_update (task_key, number) WHERE body IS NOT NULL;
