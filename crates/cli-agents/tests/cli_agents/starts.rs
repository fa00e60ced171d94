//! When programs are started, and that they are started again if they end before they begin.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_cli_agents::adapters::{
    About, Adapter, Decision, Dialogue, Exit, FailureKind, Generic, Launch, Order, OrderError, Steps,
};
use switchboard_cli_agents::{Settings, Worker};
use switchboard_engine::Switches;

use crate::bench::*;
use crate::held_store::{Gate, HeldStore};
use crate::place::Place;

/// The code with which programs here say that they are not ready.
const NOT_READY: i32 = 75;

/// A generic program that may not be ready.
struct Hasty(Generic);

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
fn ready_at(place: &Place, start: u32) -> Settings {
    let program = format!(
        r#"hear; echo start >> "$NOTES/starts"; run=$(wc -l < "$NOTES/starts")
        [ $run -ge {start} ] || exit {NOT_READY}; finish "Done at start $run.""#
    );
    Settings::new("coder", Worker::new(Hasty(place.asking(&program))), place.work())
}

fn starts(place: &Place) -> usize {
    place.noted("starts").unwrap_or_default().lines().count()
}

/// Lets time pass until a task has ended.
async fn ended_in_time(bench: &Bench, id: &TaskId) -> Task {
    loop {
        let task = bench.get(id).await;
        if task.status.state.is_terminal() {
            return task;
        }
        bench.clock.advance(Duration::from_millis(50));
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[test]
fn a_program_that_is_not_ready_is_started_again_after_a_while() {
    let place = Place::new();
    let bench = Bench::open(&place, ready_at(&place, 2));
    bench.run(async {
        let id = bench.start("go").await;
        let waiting = "The program was not ready and is started again.";
        bench.until(&id, |task| status_text(task) == waiting).await;
        assert_eq!(starts(&place), 1, "not at once");
        let task = ended_in_time(&bench, &id).await;
        assert_eq!(ending(&task), (TaskState::Completed, "Done at start 2.".to_owned()));
    });
}

#[test]
fn a_program_that_never_is_ready_fails_after_a_few_starts() {
    let place = Place::new();
    let bench = Bench::open(&place, ready_at(&place, 100));
    bench.run(async {
        let id = bench.start("go").await;
        let task = ended_in_time(&bench, &id).await;
        assert_eq!(ending(&task), (TaskState::Failed, "the database is being made".to_owned()));
        assert_eq!(reason(&task), "agent_error/not_started");
        assert_eq!(starts(&place), 4);
    });
}

#[test]
fn a_task_that_waits_for_the_next_start_can_be_canceled() {
    let place = Place::new();
    let bench = Bench::open(&place, ready_at(&place, 100));
    bench.run(async {
        let id = bench.start("go").await;
        bench.until(&id, |task| status_text(task).starts_with("The program was not ready")).await;
        bench.cancel(&id).await.unwrap();
        assert_eq!(bench.ended(&id).await.status.state, TaskState::Canceled);
        assert_eq!(starts(&place), 1);
    });
}

/// Works on `one` until it may end.
const HELD: &str = r#"hear; case "$line" in *one*) await end;; esac; finish ok"#;

fn held(place: &Place) -> (Bench, Gate) {
    let gate = Gate::closed();
    let settings = Settings { repo_lock: false, ..place.settings(HELD) };
    let wrap = gate.clone();
    let bench = Bench::with_store(place, settings, Switches::default(), |store| {
        Arc::new(HeldStore { store: Arc::new(store), gate: wrap })
    });
    (bench, gate)
}

#[test]
fn a_program_is_not_started_before_the_log_says_that_it_may_have_been() {
    let place = Place::new();
    let (bench, gate) = held(&place);
    bench.run(async {
        let first = bench.start("one").await;
        gate.reached().await;
        // Children are started one after the other, in the order in which they are asked for.
        assert_eq!(bench.send("two").await.status.state, TaskState::Completed);
        assert_eq!(bench.children.running(), 0, "the first one's child was started before its commit");
        gate.open();
        bench.wait_for(|| (place.heard().len() == 2).then_some(())).await;
        place.allow("end");
        assert_eq!(bench.ended(&first).await.status.state, TaskState::Completed);
    });
}

#[test]
fn a_server_that_dies_before_that_is_stored_leaves_a_program_that_runs_once() {
    let place = Place::new();
    let (bench, gate) = held(&place);
    let id = bench.run(async {
        let id = bench.start("one").await;
        gate.reached().await;
        assert_eq!(bench.send("two").await.status.state, TaskState::Completed);
        id
    });
    bench.kill();
    place.allow("end");
    let bench = Bench::open(&place, place.settings(HELD));
    bench.run(async {
        assert_eq!(bench.ended(&id).await.status.state, TaskState::Completed);
        let prompts = place.heard().into_iter().filter(|line| line.contains("one"));
        assert_eq!(prompts.count(), 1);
    });
}
