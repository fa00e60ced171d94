//! All routes of a moment, ready to be matched: it is replaced as a whole when one of them changes.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_engine::CallerId;

use super::definition::Definition;
use super::state::RouteState;
use crate::feed::{TASK_WORDS, TopicIndex};

/// A route that is in force.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) definition: Definition,
    pub(crate) source: Source,
    pub(crate) state: Arc<RouteState>,
}

/// Where a route comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A registration of the same name may wait behind it.
    File {
        shadows_registration: bool,
    },
    Registration {
        version: u64,
        owner: CallerId,
    },
}

/// All routes.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    /// By name.
    pub(crate) routes: Vec<Arc<Route>>,
    names: HashMap<String, usize>,
    /// The enabled ones by what they are about.
    pub(crate) index: Arc<TopicIndex>,
    /// Whether any of them is about tasks.
    pub(crate) wants_tasks: bool,
}

impl RouteTable {
    pub(crate) fn new(mut routes: Vec<Arc<Route>>) -> Self {
        routes.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
        let mut index = TopicIndex::default();
        for (number, route) in routes.iter().enumerate().filter(|(_, route)| route.definition.enabled) {
            index.insert(&route.definition.pattern, number);
        }
        let wants_tasks = TASK_WORDS.iter().any(|word| index.begins_with(word));
        let names = routes.iter().enumerate().map(|(number, route)| (route.definition.name.clone(), number)).collect();
        Self { routes, names, index: Arc::new(index), wants_tasks }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Route>> {
        self.routes.get(*self.names.get(name)?)
    }

    /// Whether no event can be a hit.
    pub(crate) fn is_idle(&self) -> bool {
        self.index.is_empty()
    }
}
