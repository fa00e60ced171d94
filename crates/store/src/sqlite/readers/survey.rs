//! Tasks of all owners for operators, and the questions that wait.
//!
//! Without a filter, or with one that few tasks pass, a survey goes down the keys, which rise with creation. With a filter
//! by owner, agent, state or time it is the merge of the (owner, agent, state) groups, like a list.

use std::cmp::Reverse;

use rusqlite::{ToSql, named_params, params};
use switchboard_engine::ids::{AgentName, CallerId};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::{ListPosition, TaskRow};

use super::Reader;
use super::list::{PageKey, page_key};
use super::load::TASK_COLUMNS;
use crate::sqlite::columns::{Identifier, PrefixRange, state_number, via_number};
use crate::sqlite::node::Node;
use crate::sqlite::query::{Merged, limit, rows};

/// A merge of more groups costs more than going down the keys.
const GROUPS: usize = 2_000;
/// The newest ids and contexts with a prefix that are looked at.
const PREFIXED: usize = 1_000;

/// What every survey checks of a row, whichever way it was found.
const MATCHES: &str = "hidden = 0 AND (:owner IS NULL OR owner = :owner) \
     AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents)) \
     OR owner = :own AND agent IN (SELECT value FROM json_each(:own_agents))) AND (:state IS NULL OR state = :state) \
     AND (:via IS NULL OR via = :via) AND (:tree IS NULL OR root = :tree) AND status_at >= :since AND status_at < :before";

/// Which index a survey goes along, newest key first.
pub(crate) enum KeyOrder {
    All,
    Via,
    Tree,
}

/// Parameters: those of [`MATCHES`], the key to begin below, the limit.
pub(crate) fn by_key(order: &KeyOrder) -> String {
    let along = match order {
        KeyOrder::All => "NOT INDEXED WHERE true",
        KeyOrder::Via => "INDEXED BY task_via WHERE via > 0 AND via = :via",
        KeyOrder::Tree => "INDEXED BY task_root WHERE root IS NOT NULL AND root = :tree",
    };
    format!("SELECT {TASK_COLUMNS} FROM task {along} AND {MATCHES} AND key < :below ORDER BY key DESC LIMIT :limit")
}

/// Parameters: the group, the bounds of the status time, the position to begin after, the way.
pub(crate) const GROUP: &str = "SELECT status_at, key FROM task INDEXED BY task_listing \
     WHERE owner = ?1 AND agent = ?2 AND state = ?3 AND hidden = 0 AND status_at >= ?4 AND status_at < ?5 \
     AND status_at <= ?6 AND (status_at < ?6 OR key < ?7) AND (?8 IS NULL OR via = ?8) ORDER BY status_at DESC, key DESC";

/// Parameters: those of [`MATCHES`], the context, the position to begin after, the limit.
pub(crate) fn by_context() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_context WHERE context = :context AND owner = :owner \
         AND {MATCHES} AND status_at <= :at AND (status_at < :at OR key < :below) \
         ORDER BY status_at DESC, key DESC LIMIT :limit"
    )
}

/// Parameters: the owner and the agents, the position to begin after, the limit, the caller and the agents of its own.
pub(crate) fn waiting() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_waiting WHERE state IN (6, 8) \
         AND (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR agent IN (SELECT value FROM json_each(?2)) \
         OR owner = ?6 AND agent IN (SELECT value FROM json_each(?7))) \
         AND status_at >= ?3 AND (status_at > ?3 OR key > ?4) ORDER BY status_at, key LIMIT ?5"
    )
}

/// Whose tasks, by the numbers of names.
#[derive(Default)]
pub(crate) struct Whose {
    pub(crate) owner: Option<i64>,
    /// The agents' numbers as a JSON array; all if absent.
    pub(crate) agents: Option<String>,
    /// Beside those, the tasks that the server's own agents have of this owner.
    own: Option<i64>,
    own_agents: Option<String>,
}

/// A query whose names are numbers and whose open ends are closed.
struct Bounds {
    whose: Whose,
    state: Option<i64>,
    via: Option<i64>,
    tree: Option<i64>,
    since: i64,
    before: i64,
    after: (i64, i64),
    /// One more than the page, to know whether another one follows.
    wanted: usize,
}

struct Group {
    owner: i64,
    agent: i64,
    state: i64,
}

impl Reader {
    pub(crate) fn survey(&mut self, node: &Node, query: &SurveyQuery) -> rusqlite::Result<SurveyPage> {
        let Some(bounds) = self.survey_bounds(query)? else { return Ok(SurveyPage::default()) };
        let mut tasks = match query {
            SurveyQuery { context: Some(context), .. } => self.of_context(node, &bounds, context.as_str())?,
            SurveyQuery { prefix: Some(prefix), .. } => self.with_prefix(node, &bounds, prefix)?,
            SurveyQuery { tree: Some(_), .. } => self.down_the_keys(node, &bounds, &KeyOrder::Tree)?,
            SurveyQuery { via: Some(via), .. } if *via != Via::A2a => {
                self.down_the_keys(node, &bounds, &KeyOrder::Via)?
            }
            SurveyQuery { owner: None, agents: None, state: None, since: None, before: None, .. } => {
                self.down_the_keys(node, &bounds, &KeyOrder::All)?
            }
            _ => match self.survey_groups(&bounds)? {
                Some(groups) => self.merged_groups(node, &bounds, &groups)?,
                None => self.down_the_keys(node, &bounds, &KeyOrder::All)?,
            },
        };
        let more = tasks.len() > query.page_size;
        tasks.truncate(query.page_size);
        let next = tasks.last().filter(|_| more).map(position);
        Ok(SurveyPage { tasks, next })
    }

    pub(crate) fn waiting(&mut self, node: &Node, query: &WaitingQuery) -> rusqlite::Result<Vec<TaskRow>> {
        let Some(whose) = self.whose(query.owner.as_ref(), query.agents.as_deref(), query.own.as_ref())? else {
            return Ok(Vec::new());
        };
        let Whose { owner, agents, own, own_agents } = whose;
        let (at, key) = query.after.map_or((i64::MIN, i64::MIN), |(at, key)| (at.0, key.0));
        self.task_rows(node, &waiting(), params![owner, agents, at, key, limit(query.max), own, own_agents])
    }

    /// The numbers of an owner, of agents, and of what one has of the server's own agents; nothing if no task can match.
    pub(crate) fn whose(
        &mut self,
        owner: Option<&CallerId>,
        agents: Option<&[AgentName]>,
        own: Option<&CallerId>,
    ) -> rusqlite::Result<Option<Whose>> {
        let Self { connection, names } = self;
        let mut whose = Whose::default();
        if let Some(owner) = owner {
            whose.owner = names.number(connection, owner.as_str())?;
            if whose.owner.is_none() {
                return Ok(None);
            }
        }
        let Some(agents) = agents else { return Ok(Some(whose)) };
        let mut numbers = |agents: &mut dyn Iterator<Item = &str>| {
            let mut numbers: Vec<i64> = Vec::new();
            for agent in agents {
                // An agent that has never had a task has no number.
                numbers.extend(names.number(connection, agent)?);
            }
            Ok::<_, rusqlite::Error>(numbers)
        };
        let agents = numbers(&mut agents.iter().map(AgentName::as_str))?;
        if own.is_some() {
            whose.own_agents = Some(format!("{:?}", numbers(&mut AgentName::OWN.into_iter())?));
        }
        if let Some(own) = own {
            whose.own = names.number(connection, own.as_str())?;
        }
        if agents.is_empty() && whose.own.is_none() {
            return Ok(None);
        }
        whose.agents = Some(format!("{agents:?}"));
        Ok(Some(whose))
    }

    fn survey_bounds(&mut self, query: &SurveyQuery) -> rusqlite::Result<Option<Bounds>> {
        let Some(whose) = self.whose(query.owner.as_ref(), query.agents.as_deref(), query.own.as_ref())? else {
            return Ok(None);
        };
        Ok(Some(Bounds {
            whose,
            state: query.state.map(state_number),
            via: query.via.map(via_number),
            tree: query.tree.map(|root| root.0),
            since: query.since.map_or(i64::MIN, |since| since.0),
            before: query.before.map_or(i64::MAX, |before| before.0),
            after: query.after.map_or((i64::MAX, i64::MAX), |(at, key)| (at.0, key.0)),
            wanted: query.page_size.saturating_add(1),
        }))
    }

    fn down_the_keys(&mut self, node: &Node, bounds: &Bounds, order: &KeyOrder) -> rusqlite::Result<Vec<TaskRow>> {
        let params = bounds.matching();
        let mut params: Vec<(&str, &dyn ToSql)> = params.to_vec();
        let (below, wanted) = (bounds.after.1, limit(bounds.wanted));
        params.extend([(":below", &below as &dyn ToSql), (":limit", &wanted)]);
        self.task_rows(node, &by_key(order), params.as_slice())
    }

    fn of_context(&mut self, node: &Node, bounds: &Bounds, context: &str) -> rusqlite::Result<Vec<TaskRow>> {
        let mut params: Vec<(&str, &dyn ToSql)> = bounds.matching().to_vec();
        let ((at, below), wanted) = (bounds.after, limit(bounds.wanted));
        let context = Identifier::new(context);
        params.extend([(":context", &context as &dyn ToSql), (":at", &at), (":below", &below), (":limit", &wanted)]);
        self.task_rows(node, &by_context(), params.as_slice())
    }

    /// The groups that match and are not empty; nothing if there are too many.
    fn survey_groups(&self, bounds: &Bounds) -> rusqlite::Result<Option<Vec<Group>>> {
        let sql = "SELECT DISTINCT owner, agent, state FROM tally WHERE hidden = 0 AND n > 0 \
                   AND (:owner IS NULL OR owner = :owner) \
                   AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents)) \
                   OR owner = :own AND agent IN (SELECT value FROM json_each(:own_agents))) \
                   AND (:state IS NULL OR state = :state) LIMIT :limit";
        let params = named_params! {
            ":owner": bounds.whose.owner, ":agents": bounds.whose.agents, ":own": bounds.whose.own,
            ":own_agents": bounds.whose.own_agents, ":state": bounds.state, ":limit": limit(GROUPS + 1),
        };
        let groups = rows(&self.connection, sql, params, |row| {
            Ok(Group { owner: row.get(0)?, agent: row.get(1)?, state: row.get(2)? })
        })?;
        Ok((groups.len() <= GROUPS).then_some(groups))
    }

    fn merged_groups(&mut self, node: &Node, bounds: &Bounds, groups: &[Group]) -> rusqlite::Result<Vec<TaskRow>> {
        let mut newest: Merged<PageKey> = Merged::new(bounds.wanted);
        let (at, key) = bounds.after;
        for Group { owner, agent, state } in groups {
            let params = params![owner, agent, state, bounds.since, bounds.before, at, key, bounds.via];
            newest.merge(&self.connection, GROUP, params, page_key)?;
        }
        let keys = newest.first.into_iter().map(|Reverse((_, key))| key);
        self.matching_rows(node, bounds, keys)
    }

    /// The newest tasks whose id or context begins with a text.
    fn with_prefix(&mut self, node: &Node, bounds: &Bounds, prefix: &str) -> rusqlite::Result<Vec<TaskRow>> {
        let mut keys = Vec::new();
        for sql in [by_id_prefix(), by_context_prefix()] {
            for range in PrefixRange::all(prefix) {
                keys.extend(rows(&self.connection, &sql, (&range.first, &range.last), |row| row.get::<_, i64>(0))?);
            }
        }
        keys.retain(|key| *key < bounds.after.1);
        keys.sort_unstable_by_key(|key| Reverse(*key));
        keys.dedup();
        self.matching_rows(node, bounds, keys)
    }

    /// Of the tasks with these keys, in their order, the first ones that match.
    fn matching_rows(
        &mut self,
        node: &Node,
        bounds: &Bounds,
        keys: impl IntoIterator<Item = i64>,
    ) -> rusqlite::Result<Vec<TaskRow>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE key = :key AND {MATCHES}");
        let mut found = Vec::new();
        for key in keys {
            if found.len() >= bounds.wanted {
                break;
            }
            let mut params: Vec<(&str, &dyn ToSql)> = bounds.matching().to_vec();
            params.push((":key", &key));
            found.extend(self.task_rows(node, &sql, params.as_slice())?);
        }
        Ok(found)
    }
}

pub(crate) fn by_id_prefix() -> String {
    format!("SELECT key FROM task INDEXED BY task_id WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT {PREFIXED}")
}

pub(crate) fn by_context_prefix() -> String {
    format!(
        "SELECT key FROM task INDEXED BY task_context WHERE hidden = 0 AND context BETWEEN ?1 AND ?2 \
         ORDER BY context DESC LIMIT {PREFIXED}"
    )
}

impl Bounds {
    /// The parameters of [`MATCHES`].
    fn matching(&self) -> [(&str, &dyn ToSql); 9] {
        [
            (":owner", &self.whose.owner),
            (":agents", &self.whose.agents),
            (":own", &self.whose.own),
            (":own_agents", &self.whose.own_agents),
            (":state", &self.state),
            (":via", &self.via),
            (":tree", &self.tree),
            (":since", &self.since),
            (":before", &self.before),
        ]
    }
}

fn position(row: &TaskRow) -> ListPosition {
    (row.state.status_at, row.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::tasks::{LAST_AGENT, live_children};

    /// What SQLite does for a query, with its parameters unknown.
    fn plan(connection: &rusqlite::Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>, _>>();
        steps.unwrap().join("; ")
    }

    #[test]
    fn each_query_seeks_in_an_index_and_sorts_nothing() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        crate::sqlite::migrate::migrate(&mut connection).unwrap();
        for (sql, expected) in [
            (by_key(&KeyOrder::All), "SEARCH task USING INTEGER PRIMARY KEY (rowid<?)"),
            (by_key(&KeyOrder::Via), "SEARCH task USING INDEX task_via (via=? AND rowid<?)"),
            (by_key(&KeyOrder::Tree), "SEARCH task USING INDEX task_root (root=? AND rowid<?)"),
            (
                GROUP.to_owned(),
                "SEARCH task USING INDEX task_listing (owner=? AND agent=? AND state=? AND status_at>? AND status_at<?)",
            ),
            (by_context(), "SEARCH task USING INDEX task_context (context=? AND owner=? AND status_at"),
            (by_id_prefix(), "SEARCH task USING COVERING INDEX task_id (id>? AND id<?)"),
            (by_context_prefix(), "SEARCH task USING COVERING INDEX task_context (context>? AND context<?)"),
            (waiting(), "SEARCH task USING INDEX task_waiting (status_at>?)"),
            (LAST_AGENT.to_owned(), "SEARCH task USING INDEX task_context (context=? AND owner=?)"),
            (live_children(), "SEARCH task USING INDEX task_parent (parent=? AND rowid>?)"),
        ] {
            let plan = plan(&connection, &sql);
            assert!(plan.contains(expected), "{sql}: {plan}");
            assert!(!plan.contains("SCAN task") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
