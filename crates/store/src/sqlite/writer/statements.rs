//! The prepared statements of the writer's hot path, once per connection.

use rusqlite::{Connection, PrepFlags, Statement};

pub(crate) struct Statements<'c> {
    pub(crate) begin: Statement<'c>,
    pub(crate) commit: Statement<'c>,
    pub(crate) rollback: Statement<'c>,
    pub(crate) savepoint: Statement<'c>,
    pub(crate) undo: Statement<'c>,
    pub(crate) release: Statement<'c>,
    pub(crate) find_task: Statement<'c>,
    pub(crate) insert_task: Statement<'c>,
    pub(crate) update_task: Statement<'c>,
    /// Sets only columns without an index, which is enough for most output. SQLite rewrites an index entry whenever one of
    /// its columns is named in the statement, changed or not.
    pub(crate) extend_task: Statement<'c>,
    /// Apart from the statement above, because few tasks have a note.
    pub(crate) note_task: Statement<'c>,
    pub(crate) insert_event: Statement<'c>,
    /// For a task that was created without events.
    pub(crate) set_first_row: Statement<'c>,
    pub(crate) set_snapshot: Statement<'c>,
    pub(crate) send_exists: Statement<'c>,
    pub(crate) insert_send: Statement<'c>,
    pub(crate) count: Statement<'c>,
    pub(crate) find_name: Statement<'c>,
    pub(crate) insert_name: Statement<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT);
        Ok(Self {
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            savepoint: prepare("SAVEPOINT one_append")?,
            undo: prepare("ROLLBACK TO one_append")?,
            release: prepare("RELEASE one_append")?,
            find_task: prepare(
                "SELECT owner, agent, state, status_at, phase, fence, expires_at, hidden, last_seq, webhooks, \
                 recoveries, lease, id, context FROM task WHERE key = ?1",
            )?,
            insert_task: prepare(
                "INSERT INTO task (key, id, owner, agent, context, state, status_at, phase, fence, lease, expires_at, \
                 hidden, recoveries, last_seq, first_row, snapshot_row, bytes, created_at, parent, root, payer, via) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?7, ?18, ?19, ?20, ?21) \
                 ON CONFLICT (id) DO NOTHING",
            )?,
            update_task: prepare(
                "UPDATE task SET state = ?2, status_at = ?3, phase = ?4, fence = ?5, lease = ?6, expires_at = ?7, \
                 hidden = ?8, recoveries = ?9, last_seq = ?10, snapshot_row = coalesce(?11, snapshot_row), \
                 bytes = bytes + ?12, note = coalesce(?13, note) WHERE key = ?1",
            )?,
            extend_task: prepare(
                "UPDATE task SET fence = ?2, lease = ?3, recoveries = ?4, last_seq = ?5, \
                 snapshot_row = coalesce(?6, snapshot_row), bytes = bytes + ?7 WHERE key = ?1",
            )?,
            note_task: prepare("UPDATE task SET note = ?2 WHERE key = ?1")?,
            insert_event: prepare(
                "INSERT INTO event (id, task_key, first_seq, count, epoch, blob, snapshot) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            set_first_row: prepare("UPDATE task SET first_row = ?2 WHERE key = ?1")?,
            set_snapshot: prepare(
                "UPDATE event SET snapshot = ?2 WHERE id = coalesce((SELECT id FROM event WHERE task_key = ?1 AND first_seq > 1 \
                 ORDER BY first_seq DESC LIMIT 1), (SELECT first_row FROM task WHERE key = ?1)) RETURNING id",
            )?,
            send_exists: prepare("SELECT 1 FROM send WHERE owner = ?1 AND address = ?2 AND key = ?3")?,
            insert_send: prepare(
                "INSERT INTO send (owner, address, key, digest, task_key, seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            count: prepare(
                "INSERT INTO tally (owner, agent, state, hidden, parked, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT (owner, agent, state, hidden, parked) DO UPDATE SET n = n + excluded.n",
            )?,
            find_name: prepare("SELECT id FROM name WHERE text = ?1")?,
            insert_name: prepare("INSERT INTO name (text) VALUES (?1)")?,
        })
    }
}
