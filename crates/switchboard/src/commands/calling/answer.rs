//! What of a task is its answer. Data is for programs and is shown to people only where there is nothing else; what a
//! message merely repeats of an artifact is shown once; a question's options are read out of its data.

use serde::Deserialize;
use switchboard_a2a::{Artifact, Message, Part, PartContent, Task, TaskState, TaskStatus};
use switchboard_client::points_to_artifacts;
use switchboard_host::sanitize;

/// More options than these are not listed: a question with so many is a form.
const MOST_OPTIONS: usize = 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerOption {
    /// Exactly what the agent takes for it.
    pub(super) id: String,
    /// What it means; empty if the agent does not say.
    pub(super) label: String,
}

#[derive(Deserialize)]
struct OptionsData {
    options: Vec<OptionEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OptionEntry {
    Named {
        id: String,
        #[serde(default)]
        label: String,
    },
    Bare(String),
}

/// The answers that a status offers, if it asks: the `options` of a data part, as approvals have them. One whose id a
/// terminal would not show as it is has no command, and is left out.
pub(super) fn options(status: &TaskStatus) -> Vec<AnswerOption> {
    if status.state != TaskState::InputRequired {
        return Vec::new();
    }
    let parts = status.message.iter().flat_map(|message| &message.parts);
    let offers = parts.filter_map(|part| match &part.content {
        PartContent::Data(data) => data.read::<OptionsData>().ok(),
        _ => None,
    });
    let offered = offers.flat_map(|offer| offer.options).map(|offered| match offered {
        OptionEntry::Named { id, label } => AnswerOption { id, label: sanitize::line(&label) },
        OptionEntry::Bare(id) => AnswerOption { id, label: String::new() },
    });
    // A sanitized id would be another answer than the one offered, perhaps a yes.
    let is_printable = |option: &AnswerOption| !option.id.is_empty() && sanitize::line(&option.id) == option.id;
    offered.filter(is_printable).take(MOST_OPTIONS).collect()
}

/// The status message, unless it only repeats an artifact or points to it.
pub(super) fn news(task: &Task) -> Option<&Message> {
    let message = task.status.message.as_ref().filter(|message| !message.parts.is_empty())?;
    let is_repeated = |artifact: &Artifact| is_repeated(&task.status, &text_of(artifact), message);
    let is_known = points(task, &message.joined_text()) || task.artifacts.iter().any(is_repeated);
    (!is_known).then_some(message)
}

/// Whether a status message can be left out, because an artifact contains it. Only in a terminal state: a question is
/// always printed, since a text that looks like it may have been written to be approved in its place.
pub(super) fn is_repeated(status: &TaskStatus, made: &str, message: &Message) -> bool {
    let said = message.joined_text();
    status.state.is_terminal() && !said.is_empty() && repeats(made, &said)
}

/// Whether a message says nothing that the text of an artifact does not say, as far as it goes.
fn repeats(made: &str, said: &str) -> bool {
    let (said, is_cut) = match said.find("The whole answer is in the artifact ") {
        Some(place) => (said[..place].trim_end_matches(['(', '\n']), true),
        None => (said, false),
    };
    let (made, said) = (made.trim(), said.trim());
    let said = if is_cut { said.trim_end_matches('…') } else { said };
    if is_cut {
        return made.contains(said);
    }
    // "no" is no repetition of "piano".
    let ends_with_it = made.strip_suffix(said).is_some_and(|before| !before.ends_with(char::is_alphanumeric));
    !made.is_empty() && (ends_with_it || says_the_same(made, said))
}

pub(super) fn text_of(artifact: &Artifact) -> String {
    artifact.parts.iter().filter_map(Part::as_text).collect()
}

fn points(task: &Task, said: &str) -> bool {
    task.status.state == TaskState::Completed && !task.artifacts.is_empty() && points_to_artifacts(said)
}

/// Whether two texts have the same words, however their parts were put together.
fn says_the_same(one: &str, other: &str) -> bool {
    one.split_whitespace().flat_map(str::chars).eq(other.split_whitespace().flat_map(str::chars))
}
