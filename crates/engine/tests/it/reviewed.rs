//! Questions with a reviewer: who may answer them, what their own time does, and that each is decided once.

mod decided_once;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{Message, Role, TaskId, TaskState, Timestamp};
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::store::Store;
use switchboard_engine::*;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::settled::question_of;

const MINUTE: Duration = Duration::from_secs(60);

/// Asks as the first message says: `REVIEWER ACTION`. Says what it went on with.
fn gate(clock: &Arc<Mutex<Option<clock::SimulatedClock>>>) -> Script {
    let clock = clock.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let now = clock.lock().as_ref().map_or(Timestamp(0), |clock| clock.now());
        async move {
            let text = turn.text();
            let told = match &turn.cause {
                Cause::Begin => {
                    let (reviewer, action) = text.split_once(' ').unwrap();
                    let reviewer = if reviewer == "operator" { Reviewer::Operator } else { Reviewer::Caller };
                    let then = match action {
                        "approve" => ExpiryAction::Approve,
                        "reject" => ExpiryAction::Reject,
                        "escalate" => ExpiryAction::Escalate,
                        _ => ExpiryAction::Fail,
                    };
                    let expires_at = Some(later(now, MINUTE));
                    let skill = Some("deploy".to_owned());
                    let review = Review { skill, expires_at, then, ..Review::by(reviewer, turn.seq) };
                    let answer = task.ask_with(Message::text(Role::Agent, "may I?"), &review).await?;
                    told(answer.decision.as_ref(), &answer.message.joined_text())
                }
                Cause::Answer { .. } => told(turn.decision.as_ref(), &text),
                Cause::Settled { .. } => "settled".to_owned(),
                _ => format!("then {text}"),
            };
            Ok(task.complete_with(told).await?)
        }
    })
}

fn told(decision: Option<&Decision>, text: &str) -> String {
    match decision {
        Some(decision) => {
            assert_eq!((decision.turn, decision.skill.as_deref()), (Some(Seq(1)), Some("deploy")));
            format!("{:?}: {text}", decision.verdict)
        }
        None => format!("told: {text}"),
    }
}

fn caller(id: &str, is_operator: bool, agents: AgentScope) -> Caller {
    let role = if is_operator { CallerRole::Operator } else { CallerRole::Viewer };
    Caller { id: CallerId::from(id), scopes: Scopes { agents, role } }
}

fn operator() -> Caller {
    caller("olga", true, AgentScope::All)
}

fn says(verdict: Verdict, text: &str) -> ReviewAnswer {
    ReviewAnswer { verdict, message: Message::text(Role::User, text) }
}

struct Gates {
    kernel: Kernel,
    store: Arc<dyn Store>,
}

impl Gates {
    fn open(folder: &std::path::Path, settings: Settings, faults: Option<Faults>) -> Self {
        let clock = Arc::default();
        let mut below: Option<Arc<dyn Store>> = None;
        let kernel = Kernel::with(folder, gate(&clock), settings, |store| {
            let store = Arc::new(store);
            below = Some(store.clone());
            match faults {
                Some(faults) => Arc::new(FaultyStore { store, hooks: faults }),
                None => store,
            }
        });
        *clock.lock() = Some(kernel.clock.clone());
        Self { kernel, store: below.unwrap() }
    }

    /// A task that asks, and the number of its question.
    async fn asked(&self, text: &str) -> (TaskId, Seq) {
        let sent = self.kernel.send(text).await;
        answer_task(&sent).await;
        (sent.id().clone(), question_of(&*self.store, sent.id()).await)
    }

    async fn answer(&self, by: &Caller, (id, question): &(TaskId, Seq), answer: ReviewAnswer) -> Result<(), Error> {
        self.kernel.engine.answer(by, id, *question, answer).await.map(drop)
    }
}

#[test]
fn an_operators_question_is_answered_by_operators_of_its_agent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let gates = Gates::open(folder.path(), Settings::default(), None);
    gates.kernel.run(async {
        let asked = gates.asked("operator fail").await;
        // The owner's messages neither answer nor wake; they are read after the decision.
        gates.kernel.say(&asked.0, "please").await.unwrap();
        let task = gates.kernel.get(&asked.0).await.unwrap();
        assert_eq!(task.status.state, TaskState::AuthRequired);
        assert!(task.metadata.unwrap().get(QUESTION_KEY).is_some());
        let owner = caller("local", false, AgentScope::All);
        let refused = gates.answer(&owner, &asked, says(Verdict::Approve, "yes")).await;
        assert!(matches!(refused, Err(Error::NotReviewer { .. })), "{refused:?}");
        let elsewhere = caller("olga", true, AgentScope::Only(vec![AgentName::from("another")]));
        for stranger in [&elsewhere, &caller("eve", false, AgentScope::All)] {
            let refused = gates.answer(stranger, &asked, says(Verdict::Approve, "yes")).await;
            assert!(matches!(refused, Err(Error::TaskNotFound(_))), "{refused:?}");
            assert!(matches!(gates.kernel.engine.stop(stranger, &asked.0).await, Err(Error::TaskNotFound(_))));
        }
        gates.answer(&operator(), &asked, says(Verdict::Modify, "only on Monday")).await.unwrap();
        let task = gates.kernel.ended(&asked.0).await;
        assert_eq!(status_text(&task), "then please");
        assert!(task.history.iter().any(|message| message.joined_text() == "Modify: only on Monday"));
        assert!(task.metadata.is_none_or(|all| all.get(QUESTION_KEY).is_none()), "the question is closed");

        let asked = gates.asked("caller fail").await;
        gates.answer(&owner, &asked, says(Verdict::Answer, "blue")).await.unwrap();
        assert_eq!(status_text(&gates.kernel.ended(&asked.0).await), "Answer: blue");
        let asked = gates.asked("caller fail").await;
        gates.kernel.say(&asked.0, "green").await.unwrap();
        assert_eq!(status_text(&gates.kernel.ended(&asked.0).await), "told: green");
        assert_eq!(closed_by(gates.answer(&operator(), &asked, says(Verdict::Answer, "green")).await), "local");
        let asked = gates.asked("operator fail").await;
        let stopped = gates.kernel.engine.stop(&operator(), &asked.0).await.unwrap().into_task().unwrap();
        assert_eq!(stopped.status.state, TaskState::Canceled);
    });
}

/// Who has answered the question, as the refusal of another answer tells; "" if it does not.
fn closed_by(late: Result<impl std::fmt::Debug, Error>) -> String {
    match late {
        Err(Error::QuestionClosed { by: Some(by), at: Some(_), .. }) => by.to_string(),
        Err(Error::QuestionClosed { .. }) => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_answer_again_is_no_error_however_far_the_task_has_gone_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let review = |reviewer| Review::by(reviewer, turn.seq);
        if turn.cause == Cause::Begin {
            task.ask_with(Message::text(Role::Agent, "one?"), &review(Reviewer::Operator)).await?;
            // Taken: the answer is not the current message any more.
            task.next_message().await?;
            task.ask_with(Message::text(Role::Agent, "two?"), &review(Reviewer::Caller)).await?;
        }
        Ok(task.complete_with("done").await?)
    });
    let mut below: Option<Arc<dyn Store>> = None;
    let kernel =
        Kernel::with(folder.path(), script, Settings::default(), |store| below.insert(Arc::new(store)).clone());
    let store = below.unwrap();
    let yes = || says(Verdict::Approve, "yes");
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::AuthRequired).await;
        let question = question_of(&*store, sent.id()).await;
        let answer = |by, said| {
            let (engine, id) = (kernel.engine.clone(), sent.id().clone());
            async move { engine.answer(&by, &id, question, said).await }
        };
        let check_closed = async || {
            assert!(answer(operator(), yes()).await.unwrap().is_repeated);
            assert_eq!(closed_by(answer(operator(), says(Verdict::Reject, "yes")).await), "olga");
            assert_eq!(closed_by(answer(operator(), says(Verdict::Approve, "well, yes")).await), "olga");
            assert_eq!(closed_by(answer(caller("otto", true, AgentScope::All), yes()).await), "olga");
        };
        // No answer to the operator's question, though it comes before it.
        kernel.say(sent.id(), "please").await.unwrap();
        assert!(!answer(operator(), yes()).await.unwrap().is_repeated);
        check_closed().await;
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        check_closed().await;
        kernel.say(sent.id(), "go on").await.unwrap();
        kernel.ended(sent.id()).await;
        check_closed().await;
        // Numbers of events that asked nothing.
        for number in [0, 1, 99] {
            let answered = kernel.engine.answer(&operator(), sent.id(), Seq(number), yes()).await;
            assert_eq!(closed_by(answered), "");
        }
    });
}

#[test]
fn a_questions_own_time_decides_what_it_says_and_no_clock_step_approves() {
    let folder = tempfile::tempdir().unwrap();
    let hour = 60 * MINUTE;
    let settings = Settings { parked_expiry: hour, park: Duration::ZERO, ..Settings::default() };
    let gates = Gates::open(folder.path(), settings.clone(), None);
    let left = gates.kernel.run(async {
        let fails = gates.asked("operator fail").await;
        let approves = gates.asked("operator approve").await;
        let rejects = gates.asked("operator reject").await;
        let escalates = gates.asked("operator escalate").await;
        gates.kernel.clock.advance(MINUTE - Duration::from_secs(1));
        gates.kernel.engine.sweep().await;
        for asked in [&fails, &approves, &rejects, &escalates] {
            assert_eq!(gates.kernel.get(&asked.0).await.unwrap().status.state, TaskState::AuthRequired);
        }
        gates.kernel.clock.advance(Duration::from_secs(1));
        gates.kernel.engine.sweep().await;
        assert_eq!(reason(&gates.kernel.ended(&fails.0).await), "input_expired");
        let text = status_text(&gates.kernel.ended(&approves.0).await);
        assert!(text.starts_with("Approve: "), "{text}");
        let text = status_text(&gates.kernel.ended(&rejects.0).await);
        assert!(text.starts_with("Reject: "), "{text}");
        assert_eq!(gates.kernel.get(&escalates.0).await.unwrap().status.state, TaskState::AuthRequired);
        gates.kernel.clock.advance(hour);
        gates.kernel.engine.sweep().await;
        assert_eq!(reason(&gates.kernel.ended(&escalates.0).await), "input_expired");

        // The clock is set forward: the minute has not passed, so it is waited for.
        let stepped = gates.asked("operator approve").await;
        gates.kernel.clock.turn_to(later(gates.kernel.clock.now(), 2 * MINUTE));
        gates.kernel.engine.sweep().await;
        assert_eq!(gates.kernel.get(&stepped.0).await.unwrap().status.state, TaskState::AuthRequired);
        gates.kernel.clock.advance(MINUTE);
        gates.kernel.engine.sweep().await;
        assert!(status_text(&gates.kernel.ended(&stepped.0).await).starts_with("Approve: "));
        gates.asked("operator approve").await
    });
    let now = gates.kernel.clock.now();
    let Gates { kernel, store } = gates;
    drop(store);
    kernel.stop();
    // The server was down when the time came: reviewers get theirs after it is back.
    let gates = Gates::open(folder.path(), settings, None);
    gates.kernel.run(async {
        gates.kernel.clock.turn_to(later(now, 2 * MINUTE));
        gates.kernel.engine.sweep().await;
        assert_eq!(gates.kernel.get(&left.0).await.unwrap().status.state, TaskState::AuthRequired);
        gates.kernel.clock.advance(MINUTE);
        gates.kernel.engine.sweep().await;
        assert!(status_text(&gates.kernel.ended(&left.0).await).starts_with("Approve: "));
    });
}

#[test]
fn a_question_that_approves_itself_is_held_in_memory_only_while_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let gates = Gates::open(folder.path(), Settings { park: Duration::ZERO, ..Settings::default() }, None);
    let held = || gates.kernel.engine.questions_in_memory();
    gates.kernel.run(async {
        let (decided, answered) = (gates.asked("operator approve").await, gates.asked("caller approve").await);
        let (canceled, timed) = (gates.asked("operator approve").await, gates.asked("operator approve").await);
        gates.asked("operator reject").await;
        assert_eq!(held(), 4, "those that approve themselves");
        gates.answer(&operator(), &decided, says(Verdict::Reject, "no")).await.unwrap();
        assert_eq!(held(), 3);
        gates.kernel.say(&answered.0, "blue").await.unwrap();
        assert_eq!(held(), 2);
        gates.kernel.cancel(&canceled.0).await.unwrap();
        assert_eq!(held(), 1);
        gates.kernel.clock.advance(MINUTE);
        gates.kernel.engine.sweep().await;
        assert!(status_text(&gates.kernel.ended(&timed.0).await).starts_with("Approve: "));
        assert_eq!(held(), 0);
    });
}

#[test]
fn a_question_answered_at_another_node_is_not_held_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let expires_at = Some(Timestamp(i64::MAX / 2));
        let then = ExpiryAction::Approve;
        let review = Review { expires_at, then, ..Review::by(Reviewer::Caller, turn.seq) };
        if turn.cause == Cause::Begin {
            task.ask_with(Message::text(Role::Agent, "may I?"), &review).await?;
        }
        Ok(task.complete_with("done").await?)
    });
    let settings = Settings::default();
    let [first, second] = Kernel::two_nodes(folder.path(), &script, &settings, |store| Arc::new(store));
    let id = first.run(async {
        let sent = first.send("go").await;
        first.reach(sent.id(), TaskState::InputRequired).await;
        sent.id().clone()
    });
    assert_eq!(first.engine.questions_in_memory(), 1);
    second.run(second.say(&id, "yes")).unwrap();
    first.run(first.ended(&id));
    assert_eq!((first.engine.questions_in_memory(), second.engine.questions_in_memory()), (0, 0));
}

#[test]
fn a_question_whose_agent_is_gone_decides_nothing_and_expires_once() {
    let folder = tempfile::tempdir().unwrap();
    let gates = Gates::open(folder.path(), Settings::default(), None);
    let asked = gates.kernel.run(async { [gates.asked("operator approve").await, gates.asked("caller reject").await] });
    let Gates { kernel, store } = gates;
    drop(store);
    // An orderly stop lets time pass, which could decide the questions while their agent is still there.
    kernel.kill();
    let mut below: Option<Arc<dyn Store>> = None;
    let another = Script::new(|_, _| async { Ok(()) });
    let kernel = Kernel::named_with("another", folder.path(), another, |store| below.insert(Arc::new(store)).clone());
    let store = below.unwrap();
    kernel.run(async {
        for _ in 0..2 {
            kernel.clock.advance(2 * MINUTE);
            kernel.engine.sweep().await;
        }
        for (id, _) in &asked {
            let row = store.row(id).await.unwrap().unwrap();
            assert!(row.state.state.is_interrupted(), "{:?}", row.state.state);
            let timeout = later(row.state.status_at, Settings::default().parked_expiry);
            assert_eq!(row.state.expires_at, Some(timeout), "no later sweep finds it before");
        }
        kernel.clock.advance(Settings::default().parked_expiry);
        kernel.engine.sweep().await;
        for (id, _) in &asked {
            assert_eq!(reason(&kernel.ended(id).await), "input_expired");
        }
    });
}

#[test]
fn a_question_is_not_postponed_until_the_time_of_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    // The time of both questions is over as soon as they are asked.
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if let Cause::Answer { .. } = &turn.cause {
            // The second node goes on.
            return Ok(task.complete_with(turn.text()).await?);
        }
        let expires_at = Some(Timestamp(0));
        let review = |then| Review { expires_at, then, ..Review::by(Reviewer::Operator, turn.seq) };
        task.ask_with(Message::text(Role::Agent, "one?"), &review(ExpiryAction::Escalate)).await?;
        task.ask_with(Message::text(Role::Agent, "two?"), &review(ExpiryAction::Reject)).await?;
        Ok(())
    });
    let (mut faults, mut store) = (Faults::default(), None);
    let [first, second] = Kernel::two_nodes(folder.path(), &script, &Settings::default(), |opened| {
        // Those of the second node stay.
        faults = Faults::default();
        let below = Arc::new(opened);
        store = Some(below.clone());
        Arc::new(FaultyStore { store: below, hooks: faults.clone() })
    });
    let store = store.unwrap();
    first.run(async {
        let sent = first.send("go").await;
        first.reach(sent.id(), TaskState::AuthRequired).await;
        let question = question_of(&*store, sent.id()).await;
        faults.hold_next_append();
        let engine = second.engine.clone();
        let sweep = tokio::spawn(async move { engine.sweep().await });
        faults.until_append_held().await;
        first.engine.answer(&operator(), sent.id(), question, says(Verdict::Approve, "yes")).await.unwrap();
        while status_text(&first.get(sent.id()).await.unwrap()) != "two?" {
            tokio::task::yield_now().await;
        }
        faults.release_append();
        sweep.await.unwrap();
        let row = store.row(sent.id()).await.unwrap().unwrap();
        assert_eq!(row.state.expires_at, Some(Timestamp(0)), "it is left to the next sweep");
        second.engine.sweep().await;
        let task = second.ended(sent.id()).await;
        assert_eq!(status_text(&task), "rejected: no reviewer answered in time");
    });
}
