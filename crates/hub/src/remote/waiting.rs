//! What is known of a task that waits for an answer while no turn runs: its remote task, and the number of its question.
//! Read from the newest snapshot on, so that it costs the same however long the log is.

use switchboard_a2a::TaskId;
use switchboard_engine::event::Event;
use switchboard_engine::fold::Fold;
use switchboard_engine::store::{Store, StoreError};
use switchboard_engine::{Review, Seq};

use super::saved::Saved;

/// How the line of an artifact begins. Artifacts are most of a log, and nothing here.
const ARTIFACT: &[u8] = br#"{"artifactUpdate""#;

/// A task that waits.
pub(crate) struct WaitingTask {
    /// The number of the question.
    pub(crate) question: Seq,
    /// What its agent has saved, if that is a remote agent.
    pub(crate) saved: Option<Saved>,
}

/// Reads a task that waits for an answer; nothing if it does not.
pub(crate) async fn waiting_task(store: &dyn Store, id: &TaskId) -> Result<Option<WaitingTask>, StoreError> {
    let Some(fold) = fold_of_waiting(store, id).await? else { return Ok(None) };
    // What a gate asks about was not sent yet, whatever was sent in earlier turns.
    if Review::of_task(&fold.task).is_some_and(|review| review.is_gate()) {
        return Ok(None);
    }
    let saved = fold.kernel.saved.as_ref().and_then(Saved::read);
    Ok(Some(WaitingTask { question: Seq(fold.kernel.last_stop), saved }))
}

/// The fold of a task that waits, without its artifacts; nothing if it does not wait.
pub(crate) async fn fold_of_waiting(store: &dyn Store, id: &TaskId) -> Result<Option<Fold>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    if !loaded.row.state.state.is_interrupted() {
        return Ok(None);
    }
    let (mut folded, mut fold) = (Seq(0), Fold::new(&loaded.row.task));
    if let Some((seq, _, snapshot)) = &loaded.snapshot {
        match Fold::from_snapshot(snapshot) {
            Ok(read) => (folded, fold) = (*seq, read),
            Err(error) => {
                tracing::error!(task = %id, %error, "the snapshot of a waiting task cannot be read");
                return Ok(None);
            }
        }
    }
    for row in &loaded.events {
        for (seq, line) in row.lines().filter(|(seq, line)| *seq > folded && !line.starts_with(ARTIFACT)) {
            match Event::decode(line) {
                Ok(event) => fold.apply(seq, &event),
                Err(error) => tracing::error!(task = %id, %seq, %error, "an event of a waiting task cannot be read"),
            }
        }
    }
    Ok(Some(fold))
}
