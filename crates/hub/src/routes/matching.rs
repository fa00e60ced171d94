//! The projector's part: each item of a row is looked up once for all routes, and a hit is owed with the page. A page that is
//! read again finds the same hits under the same names, so none is owed twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedContent, FeedRow, JournalLine};
use switchboard_engine::store::hub::NewJob;
use switchboard_engine::{AgentName, Caller, Seq};

use super::Routes;
use super::journal::{ROUTE, line};
use super::owed::{delivery, hit};
use super::state::RouteState;
use super::table::{Route, RouteTable};
use super::trigger::Cause;
use crate::feed::{FeedFilter, Item, View, items};
use crate::hub::HubState;

/// The first words of the lines that alerts about routes write.
const OWN_ALERT: &str = "alert.route_failing.";

/// What a page means to routes.
#[derive(Default)]
pub(crate) struct Hits {
    /// As of the first row of the page.
    table: Option<Arc<RouteTable>>,
    counts: BTreeMap<String, Count>,
}

/// Hits of one route.
struct Count {
    state: Arc<RouteState>,
    owed: u64,
    left_out: u64,
}

/// What is to be stored with the page.
#[derive(Default)]
pub(crate) struct Owed {
    pub(crate) jobs: Vec<NewJob>,
    pub(crate) lines: Vec<JournalLine>,
}

impl Hits {
    /// Looks events of a row up, those after a number.
    pub(crate) async fn add(&mut self, hub: &HubState, row: &FeedRow, after: Seq) -> Result<Owed, StoreError> {
        let table = Arc::clone(self.table.get_or_insert_with(|| hub.routes.table()));
        let is_about_tasks = matches!(row.content, FeedContent::Events { .. });
        let mut owed = Owed::default();
        if table.is_idle() || (is_about_tasks && !table.wants_tasks) {
            return Ok(owed);
        }
        let filter = FeedFilter { index: Some(Arc::clone(&table.index)), ..FeedFilter::default() };
        let items = items(hub, &View::of(&Caller::local()), &filter, row, after).await?;
        let mut cause = None;
        for item in &items {
            for route in table.routes_of(item) {
                if !wants(&route, item, row) {
                    continue;
                }
                let cause = match &mut cause {
                    Some(cause) => cause,
                    None => cause.insert(Cause::of(hub, row).await?),
                };
                if !cause.routes.contains(&route.definition.name) {
                    self.owe(hub, &route, item, &mut owed);
                }
            }
        }
        Ok(owed)
    }

    fn owe(&mut self, hub: &HubState, route: &Route, item: &Item, owed: &mut Owed) {
        let name = &route.definition.name;
        let count = self.counts.entry(name.clone()).or_insert_with(|| {
            let state = Arc::clone(&route.state);
            Count { state, owed: 0, left_out: 0 }
        });
        let most = hub.parts.config.hub.routes.owed.get() as u64;
        let now = hub.parts.clock.now();
        if count.state.is_paused() || count.left_out > 0 || count.state.owed() + count.owed >= most {
            if count.left_out == 0 && !count.state.is_paused() {
                let owes = count.state.owed() + count.owed;
                tracing::warn!(route = name, owed = owes, "a route owes too much, and is paused");
                owed.lines.push(line(now, "paused", name, json!({ "owed": owes })));
            }
            count.left_out += 1;
            return;
        }
        if count.owed == 0 {
            owed.jobs.push(delivery(name, now));
        }
        count.owed += 1;
        owed.jobs.push(hit(name, item.id, &item.topic));
    }
}

/// Whether a route whose topic fits is about an item.
fn wants(route: &Route, item: &Item, row: &FeedRow) -> bool {
    let definition = &route.definition;
    let agent = item.source.agent.as_deref();
    let is_of_agent = match (&definition.agent, agent) {
        (Some(wanted), agent) => Some(wanted.as_str()) == agent,
        // What the hub's own agents do is the work of those that they call.
        (None, Some(agent)) => !AgentName::from(agent).is_own(),
        (None, None) => true,
    };
    let is_in_state = definition.state.is_none_or(|wanted| item.state == Some(wanted));
    is_of_agent && is_in_state && !is_about(&definition.name, item, row)
}

/// Whether a line of the journal says how a route itself is doing.
fn is_about(route: &str, item: &Item, row: &FeedRow) -> bool {
    let FeedContent::Journal(line) = &row.content else { return false };
    let named = |member: &str| {
        let payload: Value = serde_json::from_slice(&line.payload).unwrap_or_default();
        payload[member] == route
    };
    (item.topic.starts_with("hub.route.") && named(ROUTE)) || (item.topic.starts_with(OWN_ALERT) && named("subject"))
}

impl RouteTable {
    /// The routes whose topic fits an item, each once.
    fn routes_of(&self, item: &Item) -> Vec<Arc<Route>> {
        let mut numbers = Vec::new();
        for topic in std::iter::once(&item.topic).chain(&item.aliases) {
            self.index.find(topic, &mut |number| numbers.push(number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.routes.get(number).cloned()).collect()
    }
}

impl Routes {
    /// Counts what a page has owed, once it is stored.
    pub(crate) fn committed(&self, hits: &Hits) {
        for Count { state, owed, left_out } in hits.counts.values() {
            state.owes(*owed, *left_out);
        }
    }
}
