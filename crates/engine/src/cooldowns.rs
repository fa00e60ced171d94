//! Cooldowns that this process knows to be running: a send that one of them refuses costs no commit. The store's own row
//! decides, with the append that takes it; what is not known here is found there.

use std::collections::HashMap;

use parking_lot::Mutex;
use switchboard_a2a::Timestamp;

use crate::clock::later;
use crate::directory::{CooldownRule, Hosted};
use crate::engine::EngineState;
use crate::error::Error;
use crate::ids::CallerId;
use crate::store::{COOLDOWNS, Cooldown};

/// When the known cooldowns are over, by their keys. At most [`COOLDOWNS`].
#[derive(Default)]
pub(crate) struct RunningCooldowns(Mutex<HashMap<String, Timestamp>>);

impl RunningCooldowns {
    fn until(&self, key: &str, now: Timestamp) -> Option<Timestamp> {
        self.0.lock().get(key).copied().filter(|until| *until > now)
    }

    fn insert(&self, key: String, until: Timestamp, now: Timestamp) {
        let mut running = self.0.lock();
        if running.len() >= COOLDOWNS {
            running.retain(|_, until| *until > now);
        }
        if running.len() < COOLDOWNS {
            running.insert(key, until);
        }
    }
}

impl EngineState {
    /// The cooldown that a new task takes; refused if it is known to be running.
    pub(crate) fn cooldown(&self, caller: &CallerId, hosted: &Hosted, rule: CooldownRule) -> Result<Cooldown, Error> {
        let now = self.clock.now();
        match self.cooldowns.until(&rule.key, now) {
            None => Ok(Cooldown { key: rule.key, now, until: later(now, rule.window) }),
            Some(until) => Err(self.cooling_down(caller, hosted, rule.key, until)),
        }
    }

    /// Keeps in mind that a task has taken a cooldown.
    pub(crate) fn cooldown_taken(&self, cooldown: Cooldown) {
        self.cooldowns.insert(cooldown.key, cooldown.until, cooldown.now);
    }

    /// The store has refused a cooldown that was not known here.
    pub(crate) fn cooling_down(&self, caller: &CallerId, hosted: &Hosted, key: String, until: Timestamp) -> Error {
        let now = self.clock.now();
        self.directory.refused_by_cooldown(caller, &hosted.name, &key);
        self.cooldowns.insert(key.clone(), until, now);
        let retry_after_ms = u64::try_from(until.0.saturating_sub(now.0)).unwrap_or_default().max(1);
        Error::CoolingDown { key, retry_after_ms }
    }
}
