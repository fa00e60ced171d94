//! Tasks in SQLite. Appends are queued for a group commit; reads run in the pool, most of them in a batch with others.

use std::sync::Arc;

use rusqlite::{Params, params};
use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::Bus;
use switchboard_engine::ids::{AgentName, CallerId, Epoch, Fence, Seq, TaskKey};
use switchboard_engine::store::feed::{FeedPage, FeedRow, FeedStart, JournalRetention, Located, LogsQuery, Position};
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::{
    Append, Appended, Conversation, EventRow, IdempotencyRecord, IdempotencyScope, ListPage, ListQuery, LoadedTask,
    LoadedTaskWithin, Retention, Store, StoreError, StoreFuture, TaskCounts, TaskHead, TaskRow,
};
use tokio::sync::watch;

use super::SqliteStore;
use super::columns::{Identifier, IdentifierText, phase_from, state_from};
use super::query::{limit, optional_row, rows};
use super::readers::load::TASK_COLUMNS;
use super::readers::{ReadSize, Reader};

/// The most that a read may load and still share a transaction with others.
const SMALL_READ: usize = 64 << 10;

/// Tasks evicted per transaction, so that appends wait a few milliseconds at most.
const EVICTED_AT_ONCE: usize = 64;

/// Parameters: the context, the owner. A child's agent was its parent's choice and says nothing about the caller's.
pub(crate) const LAST_AGENT: &str = "SELECT agent FROM task INDEXED BY task_context \
     WHERE context = ?1 AND owner = ?2 AND hidden = 0 AND parent IS NULL ORDER BY status_at DESC, key DESC LIMIT 1";

/// Parameters: the parent, the key to begin after, the limit.
pub(crate) fn live_children() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_parent \
         WHERE parent IS NOT NULL AND parent = ?1 AND key > ?2 AND phase < 4 ORDER BY key LIMIT ?3"
    )
}

/// Parameters: the task to begin with, the limit.
pub(crate) fn ancestors() -> String {
    format!(
        "WITH RECURSIVE above (ancestor, level) AS (VALUES (?1, 1) UNION ALL \
         SELECT task.parent, level + 1 FROM above JOIN task ON task.key = ancestor \
         WHERE task.parent IS NOT NULL AND level < ?2) \
         SELECT {TASK_COLUMNS} FROM above JOIN task ON task.key = ancestor ORDER BY level"
    )
}

/// Parameters: the root, the key to begin after, the limit.
pub(crate) fn tree() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_root \
         WHERE root IS NOT NULL AND root = ?1 AND key > ?2 ORDER BY key LIMIT ?3"
    )
}

impl Store for SqliteStore {
    fn append(&self, append: Append) -> StoreFuture<Appended> {
        let (queue, node) = (Arc::clone(&self.queue), self.node.clone());
        Box::pin(async move { queue.append(append, node).await })
    }

    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        let (id, node) = (id.clone(), self.node.clone());
        self.read(move |reader| reader.row(&node, &id))
    }

    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        let (id, node) = (id.clone(), self.node.clone());
        self.readers.read(ReadSize::Large, move |reader| reader.load(&node, &id))
    }

    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        let (id, node) = (id.clone(), self.node.clone());
        self.read(move |reader| reader.load_within(&node, &id, max_bytes))
    }

    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.read(move |reader| reader.log(key, after, max_bytes))
    }

    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        let node = self.node.clone();
        self.read(move |reader| reader.list(&node, &query))
    }

    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        let size = if max_bytes > SMALL_READ { ReadSize::Large } else { ReadSize::Small };
        let node = self.node.clone();
        self.readers.read(size, move |reader| reader.load_some(&node, &keys, max_bytes))
    }

    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        if self.sent_keys.excludes(&scope) {
            return Box::pin(std::future::ready(Ok(None)));
        }
        let sent_keys = Arc::clone(&self.sent_keys);
        self.read(move |reader| {
            sent_keys.learn(reader)?;
            let Reader { connection, names } = reader;
            let Some(owner) = names.number(connection, scope.owner.as_str())? else { return Ok(None) };
            let sql = "SELECT digest, task.id, seq FROM send JOIN task ON task.key = send.task_key \
                       WHERE send.owner = ?1 AND address = ?2 AND send.key = ?3";
            optional_row(connection, sql, (owner, &scope.address, &scope.key), |row| {
                let IdentifierText(task) = row.get(1)?;
                let seq = Seq(row.get::<_, i64>(2)?.cast_unsigned());
                Ok(IdempotencyRecord { scope: scope.clone(), digest: row.get(0)?, task: Some(task.into()), seq })
            })
        })
    }

    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_live WHERE phase < 4 AND phase < 3 AND key > ?1 \
             AND (phase <> 1 OR coalesce(lease, 0) NOT IN ({})) ORDER BY key LIMIT ?2",
            self.node.live_numbers()
        );
        self.task_rows(sql, (after.0, limit(max)))
    }

    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_live WHERE phase < 4 AND key > ?1 ORDER BY key LIMIT ?2"
        );
        self.task_rows(sql, (after.0, limit(max)))
    }

    fn expired(&self, now: Timestamp, after: (Timestamp, TaskKey), max: usize) -> StoreFuture<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_expiring \
             WHERE expires_at IS NOT NULL AND phase < 4 AND expires_at <= ?1 AND (expires_at, key) > (?2, ?3) \
             ORDER BY expires_at, key LIMIT ?4"
        );
        self.task_rows(sql, (now.0, after.0.0, after.1.0, limit(max)))
    }

    fn heads(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>> {
        let node = self.node.clone();
        self.read(move |Reader { connection, .. }| {
            let mut heads = Vec::with_capacity(keys.len());
            for key in keys {
                let sql = "SELECT last_seq, fence, phase, lease FROM task WHERE key = ?1";
                heads.extend(optional_row(connection, sql, [key.0], |row| {
                    Ok(TaskHead {
                        key,
                        last_seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
                        fence: Fence(row.get::<_, i64>(1)?.cast_unsigned()),
                        phase: phase_from(2, row.get(2)?)?,
                        holder: node.holder(row.get(3)?),
                    })
                })?);
            }
            Ok(heads)
        })
    }

    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>> {
        let node = self.node.clone();
        self.read(move |reader| {
            let Some((owner, agent)) = numbers(reader, &conversation.owner, &conversation.agent)? else { return Ok(Vec::new()) };
            let sql = format!(
                "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
                 AND agent = ?3 ORDER BY status_at DESC, key DESC LIMIT ?4"
            );
            let context = Identifier::new(conversation.context.as_str());
            reader.task_rows(&node, &sql, params![context, owner, agent, limit(max)])
        })
    }

    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>> {
        self.read(move |reader| {
            let Some((owner, agent)) = numbers(reader, &conversation.owner, &conversation.agent)? else {
                return Ok(None);
            };
            let sql = "SELECT note FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
                       AND agent = ?3 AND note IS NOT NULL ORDER BY status_at DESC, key DESC LIMIT 1";
            let context = Identifier::new(conversation.context.as_str());
            optional_row(&reader.connection, sql, params![context, owner, agent], |row| row.get(0))
        })
    }

    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>> {
        self.read(move |Reader { connection, names }| {
            let Some(owner) = names.number(connection, owner.as_str())? else { return Ok(None) };
            let context = Identifier::new(context.as_str());
            match optional_row(connection, LAST_AGENT, params![context, owner], |row| row.get(0))? {
                Some(agent) => Ok(Some(names.text(connection, agent)?.into())),
                None => Ok(None),
            }
        })
    }

    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.task_rows(live_children(), (parent.0, after.0, limit(max)))
    }

    fn ancestors(&self, key: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.task_rows(ancestors(), (key.0, limit(max)))
    }

    fn tree(&self, root: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.task_rows(tree(), (root.0, after.0, limit(max)))
    }

    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>> {
        let node = self.node.clone();
        self.read(move |reader| reader.waiting(&node, &query))
    }

    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage> {
        let node = self.node.clone();
        self.read(move |reader| reader.survey(&node, &query))
    }

    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        let candidates = self.read(move |reader| reader.evictable(retention, max));
        let queue = Arc::clone(&self.queue);
        Box::pin(async move {
            let keys = candidates.await?;
            let mut evicted = 0;
            for some in keys.chunks(EVICTED_AT_ONCE) {
                let some = some.to_vec();
                evicted += queue.write_exclusive(move |session| session.evict(&some)).await?;
            }
            // Each step is queued on its own, so that appends go in between.
            while evicted > 0 && queue.write_exclusive(|session| session.vacuum_step()).await? {}
            Ok(evicted)
        })
    }

    fn held_by_consumers(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.read(move |reader| reader.held_by_consumers(retention, max))
    }

    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage> {
        let size = if max_bytes > SMALL_READ { ReadSize::Large } else { ReadSize::Small };
        self.readers.read(size, move |reader| reader.feed(after, max_rows, max_bytes))
    }

    fn read_logs(&self, query: LogsQuery) -> StoreFuture<Vec<FeedRow>> {
        let size = if query.max_bytes > SMALL_READ { ReadSize::Large } else { ReadSize::Small };
        self.readers.read(size, move |reader| reader.logs(&query))
    }

    fn locate(&self, start: FeedStart) -> StoreFuture<Located> {
        self.read(move |reader| reader.locate(start))
    }

    fn committed(&self) -> watch::Receiver<i64> {
        self.committed.subscribe()
    }

    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize> {
        self.queue.write_exclusive(move |session| session.evict_journal(retention, max))
    }

    /// From the task counters (table `tally`).
    fn census(&self) -> StoreFuture<TaskCounts> {
        self.read(|Reader { connection, names }| {
            let sql =
                "SELECT state, sum(n) FROM tally WHERE hidden = 0 GROUP BY state HAVING sum(n) > 0 ORDER BY state";
            let by_state = rows(connection, sql, [], |row| {
                Ok((state_from(0, row.get(0)?)?, row.get::<_, i64>(1)?.cast_unsigned()))
            })?;
            let sql =
                "SELECT owner, sum(n) FROM tally WHERE parked = 1 GROUP BY owner HAVING sum(n) > 0 ORDER BY owner";
            let parked = rows(connection, sql, [], |row| {
                Ok((names.text(connection, row.get(0)?)?.into(), row.get::<_, i64>(1)?.cast_unsigned()))
            })?;
            Ok(TaskCounts { by_state, parked })
        })
    }

    fn bus(&self) -> Option<Arc<dyn Bus>> {
        let bus = self.bus.clone()?;
        Some(Arc::new(bus))
    }

    fn secret(&self) -> [u8; 32] {
        self.start.secret
    }

    fn ready(&self) -> Result<(), StoreError> {
        self.queue.ready()
    }

    fn close(&self) -> StoreFuture<()> {
        if !self.node.is_alone() {
            // Behind what it has queued; the other nodes go on.
            let node = self.node.clone();
            return self.queue.write_exclusive(move |_| {
                node.die();
                Ok(())
            });
        }
        let ended = self.queue.close();
        Box::pin(async move {
            // An error means that the store was closed before.
            ended.await.ok();
            Ok(())
        })
    }
}

impl SqliteStore {
    fn task_rows(&self, sql: String, params: impl Params + Send + 'static) -> StoreFuture<Vec<TaskRow>> {
        let node = self.node.clone();
        self.read(move |reader| reader.task_rows(&node, &sql, params))
    }

    /// The epoch that this process writes in.
    pub fn epoch(&self) -> Epoch {
        self.start.epoch
    }
}

/// Absent if the owner or the agent has never had a task.
fn numbers(reader: &mut Reader, owner: &CallerId, agent: &AgentName) -> rusqlite::Result<Option<(i64, i64)>> {
    let owner = reader.names.number(&reader.connection, owner.as_str())?;
    let agent = reader.names.number(&reader.connection, agent.as_str())?;
    Ok(owner.zip(agent))
}
