//! What the projector has to know of an agent for each of its rows; looked up once a page.

use std::sync::Arc;

use switchboard_engine::{AgentName, Served};

use super::drift;
use crate::health::Declared;
use crate::hub::HubState;

/// An agent as it is served while a page is read.
#[derive(Clone)]
pub(super) struct AgentFacts {
    pub(super) served: Option<Arc<Served>>,
    pub(super) declared: Declared,
    /// It says what it changes outside.
    pub(super) changes_world: bool,
}

impl AgentFacts {
    pub(super) fn of(hub: &HubState, agent: &AgentName) -> Self {
        let served = hub.engine.directory().find(agent).map(|hosted| hosted.served());
        let changes_world =
            served.as_ref().is_some_and(|served| served.manifest.extensions.iter().any(drift::declares));
        let declared = Declared::of(agent, served.as_deref());
        Self { served, declared, changes_world }
    }
}
