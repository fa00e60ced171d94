//! What routing knows of agents beside their definitions, kept for messages to be routed without I/O: how well each of them
//! has done, as the projector has counted it, and which of them are compared.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use switchboard_engine::AgentName;

use super::roster_view::{Experiment, Track};

/// What is known of agents.
#[derive(Debug, Default)]
pub struct RoutingSignals {
    tracks: RwLock<BTreeMap<String, Track>>,
    experiments: RwLock<Vec<Experiment>>,
}

impl RoutingSignals {
    /// Replaces what is known of all agents.
    pub fn set_tracks(&self, tracks: BTreeMap<String, Track>) {
        *self.tracks.write() = tracks;
    }

    /// How well an agent has done; nothing is known of one without outcomes.
    pub fn track(&self, agent: &AgentName) -> Track {
        self.tracks.read().get(agent.as_str()).copied().unwrap_or_default()
    }

    /// Replaces the comparisons.
    pub fn set_experiments(&self, experiments: Vec<Experiment>) {
        *self.experiments.write() = experiments;
    }

    /// The comparisons.
    pub fn experiments(&self) -> Vec<Experiment> {
        self.experiments.read().clone()
    }
}
