//! What a remote agent reports that its task has used, as usage of the task here: taken once, with the terminal event, and
//! added to what earlier remote tasks of the same task have used.

use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::{Metadata, Task, TaskStatus};
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::{Manifest, TaskUsage, Usage};

/// What a task here has used so far by itself.
pub(super) fn of_task(here: &Task) -> Option<Usage> {
    here.metadata.as_ref()?.get(USAGE_KEY)?.read().ok()
}

/// The total of a remote task that ends with a status: what another Switchboard has counted, else what the agent reports,
/// if its card declares that. `last` is what it has reported in this stream.
pub(super) fn total(
    manifest: &Manifest,
    here: &Task,
    status: &TaskStatus,
    metadata: Option<&Metadata>,
    last: Option<Cost>,
) -> Option<Usage> {
    if let Some(counted) = TaskUsage::read(metadata) {
        return Some(counted.tree());
    }
    if !declares_cost(manifest) {
        return None;
    }
    let of_end = status.message.as_ref().and_then(|message| Cost::in_message(message).pop());
    let of_end = of_end.or_else(|| Cost::in_metadata(metadata));
    let cost = of_end.or(last).or_else(|| Cost::last_in_task(here))?;
    let (input_tokens, output_tokens) = cost.usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
    Some(Usage { input_tokens, output_tokens, cost_usd: cost.cost_usd.unwrap_or(0.0) })
}

fn declares_cost(manifest: &Manifest) -> bool {
    manifest.extensions.iter().any(|extension| extension.uri == Cost::URI)
}
