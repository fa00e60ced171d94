//! Snapshots and logs: any bytes as a snapshot, and any events in any order as a log.

use switchboard_engine::event::Event;
use switchboard_engine::fold::{Fold, task_line};
use switchboard_engine::ids::Seq;
use switchboard_engine::store::TaskIdentity;
use switchboard_engine::store::lineage::Lineage;

use super::stable::{one_line_of_json, text};

/// Reads the input as a snapshot, and line by line as events that are taken into a new task.
pub fn target(data: &[u8]) {
    if let Ok(fold) = Fold::from_snapshot(data) {
        written_and_read(&fold);
    }
    let mut fold = Fold::new(&TaskIdentity {
        id: "task".into(),
        owner: "owner".into(),
        agent: "agent".into(),
        context: "context".into(),
        lineage: Lineage::default(),
    });
    let mut seq = Seq(0);
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(event) = Event::decode(line) {
            seq = seq.plus(1);
            fold.apply(seq, &event);
        }
    }
    written_and_read(&fold);
}

fn written_and_read(fold: &Fold) {
    let snapshot = fold.snapshot();
    one_line_of_json(&task_line(&snapshot));
    let again = Fold::from_snapshot(&snapshot).unwrap_or_else(|error| panic!("{error} in {}", text(&snapshot)));
    assert_eq!(again.task, fold.task, "{}", text(&snapshot));
    // An ended task needs the kernel's part no more, unless it holds a direct reply.
    if !fold.task.status.state.is_terminal() || fold.kernel.reply.is_some() {
        assert_eq!(again.kernel, fold.kernel, "{}", text(&snapshot));
    }
}
