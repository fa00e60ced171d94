//! A run that somebody asks for: now, whatever the schedule says, which it leaves as it is.

use serde_json::{Value, json};
use switchboard_a2a::TaskId;
use switchboard_engine::CallerRole;

use super::fire::published;
use super::journal::run_line;
use super::{Ceremonies, CeremonyError, run};
use crate::audit::{Act, Actor};
use crate::hub::HubState;
use crate::metric_definitions as metric;

/// A run that has begun.
pub(crate) struct ManualRun {
    pub(crate) id: String,
    /// None where a ceremony only publishes.
    pub(crate) task: Option<TaskId>,
}

impl Ceremonies {
    /// Runs a ceremony as its owner. Asked for again with the same key, it is the same run.
    pub(crate) async fn run_now(
        &self,
        hub: &HubState,
        actor: &Actor,
        id: &str,
        key: Option<String>,
    ) -> Result<ManualRun, CeremonyError> {
        let ceremony = self.permitted(actor, id, CallerRole::Operator)?;
        let owner = self.owner(&ceremony).ok_or_else(|| {
            CeremonyError::Forbidden("the key of its owner is revoked: delete it, and create it anew".to_owned())
        })?;
        let definition = &ceremony.definition;
        if definition.publish.is_some() && owner.scopes.role < CallerRole::Admin {
            let problem = "its owner is no administrator any more, and it publishes";
            return Err(CeremonyError::Forbidden(problem.to_owned()));
        }
        let now = self.parts.clock.now();
        let run_id = key.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let task = match definition.sends() {
            true => {
                let key = format!("switchboard:ceremony:{id}:run:{run_id}");
                Some(run::send(hub, &owner, &ceremony, now, key).await?)
            }
            false => None,
        };
        metrics::counter!(metric::CEREMONY_FIRES, "outcome" => "manual").increment(1);
        let payload = json!({ "scheduledAt": now, "manual": true, "runId": run_id });
        let after = json!({ "runId": run_id });
        let act =
            Act { name: "ceremonies.run", subject: id, agent: None, task: task.clone(), before: Value::Null, after };
        let mut lines = vec![run_line(now, &ceremony, "fired", task.as_ref(), payload), actor.did(now, act)];
        lines.extend(published(now, &ceremony));
        match definition.sends() {
            // The run has begun, and its caller is told so.
            true => self.tell(lines).await,
            false => drop(self.parts.store.journal(lines).await?),
        }
        Ok(ManualRun { id: run_id, task })
    }
}
