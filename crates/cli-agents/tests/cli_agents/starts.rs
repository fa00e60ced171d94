//! When programs are started, and that they are started again if they end before they begin.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_cli_agents::adapters::{
    About, Adapter, Decision, Declared, Dialogue, Exit, FailureKind, Launch, Order, OrderError, Steps,
};
use switchboard_cli_agents::{Settings, Worker};
use switchboard_engine::Switches;
use switchboard_engine::store::forwarding::ForwardingStore;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::held_store::Gate;

/// The code with which programs here say that they are not ready.
const NOT_READY: i32 = 75;

/// A generic program that may not be ready.
struct Hasty(Declared);

impl Adapter for Hasty {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        let (launch, dialogue) = self.0.start(order)?;
        Ok((launch, Box::new(HastyDialogue(dialogue))))
    }
}

struct HastyDialogue(Box<dyn Dialogue>);

impl Dialogue for HastyDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        self.0.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        self.0.line(line, steps);
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        self.0.decide(request, decision, steps);
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if exit.code == Some(NOT_READY) {
            return steps.fail(FailureKind::NotReady, "the database is being made");
        }
        self.0.ended(exit, steps);
    }
}

/// A program that is ready when it is started so often.
fn ready_at(fixture: &Fixture, start: u32) -> Settings {
    let program = format!(
        r#"hear; echo start >> "$NOTES/starts"; run=$(wc -l < "$NOTES/starts")
        [ $run -ge {start} ] || exit {NOT_READY}; finish "Done at start $run.""#
    );
    Settings::new("coder", Worker::new(Hasty(fixture.asking(&program))), fixture.work())
}

fn starts(fixture: &Fixture) -> usize {
    fixture.noted("starts").unwrap_or_default().lines().count()
}

/// Lets time pass until a task has ended.
async fn ended_in_time(harness: &Harness, id: &TaskId) -> Task {
    loop {
        let task = harness.get(id).await;
        if task.status.state.is_terminal() {
            return task;
        }
        harness.clock.advance(Duration::from_millis(50));
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[test]
fn a_program_that_is_not_ready_is_started_again_after_a_while() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, ready_at(&fixture, 2));
    harness.run(async {
        let id = harness.start("go").await;
        let waiting = "The program was not ready and is started again.";
        harness.until(&id, |task| status_text(task) == waiting).await;
        assert_eq!(starts(&fixture), 1, "not at once");
        let task = ended_in_time(&harness, &id).await;
        assert_eq!(ending(&task), (TaskState::Completed, "Done at start 2.".to_owned()));
    });
}

#[test]
fn a_program_that_never_is_ready_fails_after_a_few_starts() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, ready_at(&fixture, 100));
    harness.run(async {
        let id = harness.start("go").await;
        let task = ended_in_time(&harness, &id).await;
        assert_eq!(ending(&task), (TaskState::Failed, "the database is being made".to_owned()));
        assert_eq!(reason(&task), "agent_error/not_started");
        assert_eq!(starts(&fixture), 4);
    });
}

#[test]
fn a_task_that_waits_for_the_next_start_can_be_canceled() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, ready_at(&fixture, 100));
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| status_text(task).starts_with("The program was not ready")).await;
        harness.cancel(&id).await.unwrap();
        assert_eq!(harness.ended(&id).await.status.state, TaskState::Canceled);
        assert_eq!(starts(&fixture), 1);
    });
}

/// Works on `one` until it may end.
const HELD: &str = r#"hear; case "$line" in *one*) await end;; esac; finish ok"#;

fn held(fixture: &Fixture) -> (Harness, Gate) {
    let gate = Gate::closed();
    let settings = Settings { repo_lock: false, ..fixture.settings(HELD) };
    let wrap = gate.clone();
    let harness = Harness::with_store(fixture, settings, Switches::default(), |store| {
        Arc::new(ForwardingStore { store: Arc::new(store), hooks: wrap })
    });
    (harness, gate)
}

#[test]
fn a_program_is_not_started_before_the_log_says_that_it_may_have_been() {
    let fixture = Fixture::new();
    let (harness, gate) = held(&fixture);
    harness.run(async {
        let first = harness.start("one").await;
        gate.reached().await;
        // Children are started one after the other, in the order in which they are asked for.
        assert_eq!(harness.send("two").await.status.state, TaskState::Completed);
        assert_eq!(harness.children.running(), 0, "the first one's child was started before its commit");
        gate.open();
        harness.wait_for(|| (fixture.heard().len() == 2).then_some(())).await;
        fixture.allow("end");
        assert_eq!(harness.ended(&first).await.status.state, TaskState::Completed);
    });
}

#[test]
fn a_server_that_dies_before_that_is_stored_leaves_a_program_that_runs_once() {
    let fixture = Fixture::new();
    let (harness, gate) = held(&fixture);
    let id = harness.run(async {
        let id = harness.start("one").await;
        gate.reached().await;
        assert_eq!(harness.send("two").await.status.state, TaskState::Completed);
        id
    });
    harness.kill();
    fixture.allow("end");
    let harness = Harness::open(&fixture, fixture.settings(HELD));
    harness.run(async {
        assert_eq!(harness.ended(&id).await.status.state, TaskState::Completed);
        let prompts = fixture.heard().into_iter().filter(|line| line.contains("one"));
        assert_eq!(prompts.count(), 1);
    });
}
