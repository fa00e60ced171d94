//! How many tasks of an agent have not ended: an agent with such tasks is not forgotten.

use switchboard_a2a::TaskState;
use switchboard_engine::AgentName;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::survey::SurveyQuery;

use super::Registry;

/// So many of a state are counted.
const PAGE: usize = 100;
const LIVE_STATES: [TaskState; 4] =
    [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired];

impl Registry {
    /// Live tasks of an agent; at most 100 of each state are counted.
    pub(super) async fn live_tasks(&self, agent: &AgentName) -> Result<usize, StoreError> {
        let mut live = 0;
        for state in LIVE_STATES {
            let query = SurveyQuery {
                agents: Some(vec![agent.clone()]),
                state: Some(state),
                page_size: PAGE,
                ..SurveyQuery::default()
            };
            live += self.parts.store.survey(query).await?.tasks.len();
        }
        Ok(live)
    }
}
