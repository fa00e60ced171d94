//! Programs that end before they begin, and may begin if they are started again.

use std::time::Duration;

use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_adapters::{
    About, Adapter, Decision, Dialogue, Exit, FailureKind, Generic, Launch, Order, OrderError, Steps,
};
use switchboard_agents::cli::{Settings, Worker};

use crate::bench::*;
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
