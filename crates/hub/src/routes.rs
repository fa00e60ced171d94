//! Routes: what happens becomes a message to an agent, or a POST to an address. The projector matches events with all routes
//! and owes a job for each hit in its own transaction; the job runner sends what is owed, a route at a time in order. Which
//! agent gets a message is the business of routing, for these messages as for all others.

mod content;
mod definition;
mod deliver;
mod error;
mod follow;
mod journal;
mod matching;
mod message;
mod owed;
mod post;
mod registrations;
mod send_rate;
mod state;
mod table;
mod template;
mod trigger;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, RwLock};
use switchboard_engine::CallerId;
use switchboard_engine::store::StoreError;
use switchboard_host::serve::ServerParts;
use switchboard_webhooks::PostSender;
use tokio::sync::Notify;

pub(crate) use self::definition::Definition;
#[cfg(test)]
pub(crate) use self::definition::Then;
pub(crate) use self::deliver::{MATCH_KIND, MatchJobs};
pub(crate) use self::error::RouteError;
pub(crate) use self::matching::Hits;
pub(crate) use self::state::RouteState;
pub(crate) use self::table::{Route, Source};
pub(crate) use self::template::{Room, Template};

use crate::definition_files::{DefinitionFiles, Listing};
use crate::registry::WorkspaceFolder;

use self::send_rate::SendRate;
use self::table::RouteTable;

/// The routes of a server.
pub(crate) struct Routes {
    parts: ServerParts,
    /// As the projector matches them.
    table: RwLock<Arc<RouteTable>>,
    /// Locked while routes change.
    defined: tokio::sync::Mutex<Defined>,
    files: Arc<Mutex<DefinitionFiles<Definition>>>,
    /// By the names of their routes, which keep theirs while they are changed.
    states: Mutex<HashMap<String, Arc<RouteState>>>,
    /// Has the files read at once.
    reload_now: Arc<Notify>,
    /// The server has started: what its files say from then on is news.
    is_started: AtomicBool,
    posts: PostSender,
    sends: SendRate,
}

/// Where routes come from.
#[derive(Default)]
struct Defined {
    files: Listing<Definition>,
    registered: BTreeMap<String, Registered>,
}

/// A route that was registered.
#[derive(Clone, Debug)]
struct Registered {
    version: u64,
    owner: CallerId,
    definition: Definition,
}

impl Routes {
    /// Reads files and registrations. A route that cannot be read is left out, and said so.
    pub(crate) async fn open(parts: &ServerParts, workspace: WorkspaceFolder) -> Result<Arc<Self>, StoreError> {
        let settings = &parts.config.hub.routes;
        let webhooks = &parts.config.webhooks;
        let retries = webhooks.retries.iter().map(|wait| wait.duration()).collect();
        let store = Arc::clone(&parts.store) as _;
        let routes = Arc::new(Self {
            table: RwLock::default(),
            defined: tokio::sync::Mutex::default(),
            files: Arc::new(Mutex::new(DefinitionFiles::new(
                workspace.path.join(&settings.folder),
                workspace.environment,
            ))),
            states: Mutex::default(),
            reload_now: Arc::default(),
            is_started: AtomicBool::new(false),
            posts: PostSender::new(parts.egress.clone(), store, webhooks.timeout.duration(), retries),
            sends: SendRate::new(settings.sends_per_root.get(), settings.sends_within.duration()),
            parts: parts.clone(),
        });
        routes.load_registrations().await?;
        routes.read_files(true).await;
        Ok(routes)
    }

    pub(crate) fn table(&self) -> Arc<RouteTable> {
        Arc::clone(&self.table.read())
    }

    /// The state of a route that is there.
    pub(crate) fn state(&self, name: &str) -> Arc<RouteState> {
        Arc::clone(self.states.lock().entry(name.to_owned()).or_default())
    }

    /// Whether there is nothing about a route that an alert could be about, as far as this process knows.
    pub(crate) fn is_well(&self, name: &str) -> bool {
        match self.table().find(name) {
            Some(route) if route.definition.enabled => route.state.is_well(),
            _ => true,
        }
    }
}
