//! One page of an owner's tasks and the exact number of all that match.
//!
//! The task counters (table `tally`) name the (agent, state) groups of an owner and their sizes; one index holds each group
//! in the order of the page. So a page is the merge of the groups' newest, and the total is a sum of a few counters.

mod since;

use std::cmp::Reverse;

use rusqlite::{Row, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{ListPage, ListQuery};

use super::Reader;
use crate::sqlite::columns::{Identifier, state_number};
use crate::sqlite::node::Node;
use crate::sqlite::query::{Merged, rows};

/// Where a task stands: newest first, that is by later time, then by larger key.
pub(super) type PageKey = Reverse<(i64, i64)>;

pub(super) fn page_key(row: &Row<'_>) -> rusqlite::Result<PageKey> {
    Ok(Reverse((row.get(0)?, row.get(1)?)))
}

/// A query whose names are numbers and whose open ends are closed.
struct Bounds {
    owner: i64,
    /// The agents' numbers as a JSON array; all if absent.
    agents: Option<String>,
    state: Option<i64>,
    since: i64,
    after: (i64, i64),
    /// One more than the page, to know whether another one follows.
    wanted: usize,
}

/// The tasks of one agent in one state.
struct Group {
    agent: i64,
    state: i64,
    size: i64,
}

impl Reader {
    pub(crate) fn list(&mut self, node: &Node, query: &ListQuery) -> rusqlite::Result<ListPage> {
        let nothing = ListPage { places: Vec::new(), sizes: Vec::new(), loaded: Vec::new(), next: None, total: 0 };
        let Some(bounds) = self.bounds(query)? else {
            return Ok(nothing);
        };
        let context = query.filter.context.as_ref();
        let (mut places, total) = match context {
            _ if query.parent.is_some() => {
                self.keys_of_children(&bounds, query.parent, context.map(|context| Identifier::new(context.as_str())))?
            }
            Some(context) => self.keys_in_context(&bounds, &Identifier::new(context.as_str()))?,
            None => self.keys_in_groups(&bounds, query.filter.since.is_some())?,
        };
        let more = places.len() > query.filter.page_size;
        places.truncate(query.filter.page_size);
        let (sizes, loaded) = self.load_page(node, places.iter().map(|Reverse((_, key))| *key))?;
        let places: Vec<_> = places.into_iter().map(|Reverse((at, key))| (Timestamp(at), TaskKey(key))).collect();
        let next = places.last().copied().filter(|_| more);
        Ok(ListPage { places, sizes, loaded, next, total })
    }

    /// Absent if the owner or all of the agents have never had a task.
    fn bounds(&mut self, query: &ListQuery) -> rusqlite::Result<Option<Bounds>> {
        let Some(owner) = self.names.number(&self.connection, query.owner.as_str())? else {
            return Ok(None);
        };
        let mut numbers = Vec::new();
        for agent in query.agents.iter().flatten() {
            // An agent that has never had a task has no number.
            numbers.extend(self.names.number(&self.connection, agent.as_str())?);
        }
        if query.agents.is_some() && numbers.is_empty() {
            return Ok(None);
        }
        let agents = query.agents.as_ref().map(|_| format!("{numbers:?}"));
        Ok(Some(Bounds {
            owner,
            agents,
            state: query.filter.state.map(state_number),
            since: query.filter.since.map_or(i64::MIN, |since| since.0),
            after: query.filter.after.map_or((i64::MAX, i64::MAX), |(at, key)| (at.0, key.0)),
            wanted: query.filter.page_size.saturating_add(1),
        }))
    }

    fn keys_in_groups(&self, bounds: &Bounds, count_each: bool) -> rusqlite::Result<(Vec<PageKey>, u64)> {
        let mut newest = Merged::new(bounds.wanted);
        let mut total = 0;
        for Group { agent, state, size } in self.groups(bounds)? {
            let sql = "SELECT status_at, key FROM task INDEXED BY task_listing \
                       WHERE owner = ?1 AND agent = ?2 AND state = ?3 AND hidden = 0 AND status_at >= ?4 \
                       AND status_at <= ?5 AND (status_at < ?5 OR key < ?6) ORDER BY status_at DESC, key DESC";
            let (at, key) = bounds.after;
            let values = params![bounds.owner, agent, state, bounds.since, at, key];
            newest.merge(&self.connection, sql, values, page_key)?;
            let group = Group { agent, state, size };
            total += if count_each { self.count_since(bounds.owner, &group, bounds.since)? } else { size };
        }
        Ok((newest.first, total.cast_unsigned()))
    }

    /// The owner's groups that match and are not empty, with their sizes.
    fn groups(&self, bounds: &Bounds) -> rusqlite::Result<Vec<Group>> {
        let sql = "SELECT agent, state, sum(n) FROM tally WHERE owner = ?1 AND hidden = 0 \
                   AND (?2 IS NULL OR agent IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR state = ?3) GROUP BY agent, state HAVING sum(n) > 0";
        let values = (bounds.owner, &bounds.agents, bounds.state);
        rows(&self.connection, sql, values, |row| {
            Ok(Group { agent: row.get(0)?, state: row.get(1)?, size: row.get(2)? })
        })
    }

    /// A task has started few others, which need no counters.
    fn keys_of_children(
        &self,
        bounds: &Bounds,
        parent: Option<TaskKey>,
        context: Option<Identifier<'_>>,
    ) -> rusqlite::Result<(Vec<PageKey>, u64)> {
        let matching = "FROM task WHERE parent = ?1 AND owner = ?2 AND hidden = 0 AND status_at >= ?3 \
                        AND (?4 IS NULL OR agent IN (SELECT value FROM json_each(?4))) AND (?5 IS NULL OR state = ?5) \
                        AND (?6 IS NULL OR context = ?6)";
        let page = format!(
            "SELECT status_at, key {matching} AND status_at <= ?7 AND (status_at < ?7 OR key < ?8) \
             ORDER BY status_at DESC, key DESC"
        );
        let parent = parent.map(|parent| parent.0);
        let (at, key) = bounds.after;
        let mut newest = Merged::new(bounds.wanted);
        let values = params![parent, bounds.owner, bounds.since, bounds.agents, bounds.state, context, at, key];
        newest.merge(&self.connection, &page, values, page_key)?;
        let mut count = self.connection.prepare_cached(&format!("SELECT count(*) {matching}"))?;
        let values = params![parent, bounds.owner, bounds.since, bounds.agents, bounds.state, context];
        let total: i64 = count.query_row(values, |row| row.get(0))?;
        Ok((newest.first, total.cast_unsigned()))
    }

    fn keys_in_context(&self, bounds: &Bounds, context: &Identifier<'_>) -> rusqlite::Result<(Vec<PageKey>, u64)> {
        let matching = "FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
                        AND status_at >= ?3 AND (?4 IS NULL OR agent IN (SELECT value FROM json_each(?4))) AND (?5 IS NULL OR state = ?5)";
        let page = format!(
            "SELECT status_at, key {matching} AND status_at <= ?6 AND (status_at < ?6 OR key < ?7) \
             ORDER BY status_at DESC, key DESC"
        );
        let (at, key) = bounds.after;
        let mut newest = Merged::new(bounds.wanted);
        let values = params![context, bounds.owner, bounds.since, bounds.agents, bounds.state, at, key];
        newest.merge(&self.connection, &page, values, page_key)?;
        let mut count = self.connection.prepare_cached(&format!("SELECT count(*) {matching}"))?;
        let values = params![context, bounds.owner, bounds.since, bounds.agents, bounds.state];
        let total: i64 = count.query_row(values, |row| row.get(0))?;
        Ok((newest.first, total.cast_unsigned()))
    }
}
