//! What an agent that stands before another one and asks first needs of the kernel: questions that park any agent, turns that
//! keep the message they began with, follow-ups that ask for no more than was approved, checkpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Json, Message, Metadata, TaskId, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

/// Under which it says that it has let a turn begin.
const PASSED: &str = "test/passed";

/// Asks an operator before every turn of the agent that it wraps. Every question of that one is a checkpoint.
struct Asks {
    agent: WrappedAgent,
    /// What it was asked about turns that lost their process.
    lost: Arc<Mutex<Vec<(String, Seq)>>>,
}

impl Agent for Asks {
    fn manifest(&self) -> Manifest {
        self.agent.manifest()
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let skill = turn.skill().map(str::to_owned);
        let review = Review { skill, ..Review::by(Reviewer::Operator, turn.began) };
        let passed = task.metadata(PASSED).is_some_and(|passed| passed.as_str() == turn.began.0.to_string());
        match turn.decision.as_ref().filter(|decision| decision.turn == Some(turn.began)) {
            _ if passed => {
                task.review_questions(review);
                self.agent.run(turn, task).await
            }
            Some(Decision { verdict: Verdict::Reject, .. }) => Ok(task.reject(turn.text()).await?),
            Some(decision) => {
                let mut metadata = Metadata::default();
                metadata.insert(PASSED, Json::from_serialize(&turn.began.0).unwrap());
                task.say(TaskState::Working, None, Some(metadata)).await?;
                task.commit().await?;
                let turn = match decision.verdict {
                    Verdict::Approve => task.turn_on(turn.began, turn).await?,
                    _ => turn,
                };
                task.review_questions(review);
                self.agent.run(Turn { cause: Cause::Begin, ..turn }, task).await
            }
            None => Ok(task.park_with(Message::text(switchboard_a2a::Role::Agent, "may it?"), &review, None).await?),
        }
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        self.lost.lock().push((task.message.joined_text(), task.began));
        Recovery::Resume
    }
}

fn asking(script: Script, lost: &Arc<Mutex<Vec<(String, Seq)>>>) -> Hosted {
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    let open = ReviewedSkills::AllBut(BTreeSet::from(["read".to_owned()]));
    let wrap = |agent| Asks { agent, lost: Arc::clone(lost) };
    Hosted::serving(AGENT, Served::new(script).switches(switches).reviewed(open, wrap))
}

/// Says what it got. Told to `ask`, it asks twice; told to `take`, it takes the next message and holds.
fn worker() -> Script {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let got = format!("{} of {} at {} began {}", turn.text(), turn.skill().unwrap_or("none"), turn.seq, turn.began);
        match turn.text().as_str() {
            "ask" => {
                let answers = [task.ask("one?").await?, task.ask("two?").await?];
                let answers = answers.map(|answer| answer.joined_text());
                Ok(task.complete_with(answers.join(" ")).await?)
            }
            "take" if turn.cause == Cause::Begin => {
                let taken = task.next_message().await?.joined_text();
                task.status(format!("took {taken}")).await?;
                task.canceled().await;
                Ok(())
            }
            _ => Ok(task.complete_with(got).await?),
        }
    });
    script.with(|manifest| manifest.park = Park::Never)
}

fn named(text: &str, skill: &str) -> Message {
    let metadata = serde_json::from_str(&format!(r#"{{"skill":"{skill}"}}"#)).unwrap();
    Message { metadata: Some(metadata), ..message(text) }
}

/// Answers the open question, whose number only the log knows.
async fn decide(kernel: &Kernel, id: &TaskId, verdict: Verdict, text: &str) {
    let scopes = Scopes { agents: AgentScope::All, role: CallerRole::Operator };
    let operator = Caller { id: CallerId::from("olga"), scopes };
    for question in 1.. {
        let answer = ReviewAnswer { verdict, message: message(text) };
        match kernel.engine.answer(&operator, id, Seq(question), answer).await {
            Err(Error::QuestionClosed { .. }) if question < 100 => {}
            answered => {
                answered.unwrap();
                return;
            }
        }
    }
}

async fn asked(kernel: &Kernel, message: Message) -> TaskId {
    let sent = kernel.try_send(message).await.unwrap();
    kernel.reach(sent.id(), TaskState::AuthRequired).await;
    sent.id().clone()
}

#[test]
fn a_question_before_the_work_parks_any_agent_and_its_decision_stands_for_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &Arc::default()));
    kernel.run(async {
        // The agent has one slot and is never parked, yet none of these takes it.
        let first = asked(&kernel, named("deploy it", "deploy")).await;
        let second = asked(&kernel, named("deploy it", "deploy")).await;
        let third = asked(&kernel, message("anything")).await;
        decide(&kernel, &second, Verdict::Modify, "deploy half of it").await;
        let task = kernel.ended(&second).await;
        assert!(status_text(&task).starts_with("deploy half of it of deploy at "), "{}", status_text(&task));
        assert!(status_text(&task).ends_with(" began 1"), "{}", status_text(&task));
        decide(&kernel, &first, Verdict::Approve, "yes").await;
        assert_eq!(status_text(&kernel.ended(&first).await), "deploy it of deploy at 1 began 1");
        decide(&kernel, &third, Verdict::Reject, "not today").await;
        let task = kernel.ended(&third).await;
        assert_eq!((task.status.state, status_text(&task).as_str()), (TaskState::Rejected, "not today"));
    });
}

#[test]
fn a_follow_up_names_no_skill_that_was_not_approved() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &Arc::default()));
    let to = |id: &TaskId, message: Message| Message { task_id: Some(id.clone()), ..message };
    kernel.run(async {
        let id = asked(&kernel, named("take", "deploy")).await;
        let hinted: Metadata = serde_json::from_str(r#"{"skill":"read","skillHint":"drop"}"#).unwrap();
        for _ in ["while it waits", "while it runs"] {
            let in_request = IncomingMessage { metadata: Some(hinted.clone()), ..request(to(&id, message("x"))) };
            let in_message = Message { metadata: Some(hinted.clone()), ..to(&id, message("x")) };
            for refused in [request(to(&id, named("x", "drop"))), request(in_message), in_request] {
                match kernel.send_as(&Caller::local(), refused).await.map(drop) {
                    Err(Error::Invalid { field: "message.metadata.skill", problem }) => {
                        assert!(problem.contains("\"drop\"") && problem.ends_with("begin a new task"), "{problem}");
                    }
                    other => panic!("{other:?}"),
                }
            }
            if kernel.get(&id).await.unwrap().status.state == TaskState::AuthRequired {
                // Read after the decision, it would begin with an approval that nobody has given for its words.
                let refused = kernel.send_as(&Caller::local(), request(to(&id, named("x", "deploy")))).await.map(drop);
                assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
                decide(&kernel, &id, Verdict::Approve, "yes").await;
                kernel.reach(&id, TaskState::Working).await;
            }
        }
        // What is approved, and what needs no approval, may be named.
        kernel.try_send(to(&id, named("more", "deploy"))).await.unwrap();
        kernel.try_send(to(&id, named("more", "read"))).await.unwrap();
        while status_text(&kernel.get(&id).await.unwrap()) != "took more" {
            tokio::task::yield_now().await;
        }
        kernel.while_time_passes(kernel.cancel(&id)).await.unwrap();
    });
}

#[test]
fn later_questions_are_numbered_checkpoints_that_only_the_reviewer_answers() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &Arc::default()));
    kernel.run(async {
        let id = asked(&kernel, named("ask", "deploy")).await;
        decide(&kernel, &id, Verdict::Approve, "yes").await;
        for (checkpoint, text) in [(1, "one?"), (2, "two?")] {
            let task = loop {
                let task = kernel.reach(&id, TaskState::AuthRequired).await;
                if status_text(&task) == text {
                    break task;
                }
            };
            let question = task.metadata.unwrap().get(QUESTION_KEY).unwrap().read::<Review>().unwrap();
            assert_eq!((question.checkpoint, question.reviewer), (Some(checkpoint), Reviewer::Operator));
            assert_eq!((question.turn, question.skill.as_deref()), (Seq(1), Some("deploy")));
            kernel.say(&id, "the owner's").await.unwrap();
            assert_eq!(kernel.get(&id).await.unwrap().status.state, TaskState::AuthRequired);
            decide(&kernel, &id, Verdict::Answer, &format!("answer {checkpoint}")).await;
        }
        let told = loop {
            let task = kernel.get(&id).await.unwrap();
            if task.history.iter().any(|message| message.joined_text() == "answer 1 answer 2") {
                break task;
            }
            tokio::task::yield_now().await;
        };
        // The owner's messages are turns of their own, which were not asked about yet.
        assert!(!told.status.state.is_terminal());
    });
}

#[test]
fn a_lost_turn_knows_the_message_that_it_began_with_and_what_was_approved() {
    let folder = tempfile::tempdir().unwrap();
    let lost = Arc::default();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &lost));
    let id = kernel.run(async {
        let id = asked(&kernel, named("take", "deploy")).await;
        decide(&kernel, &id, Verdict::Approve, "yes").await;
        kernel.reach(&id, TaskState::Working).await;
        kernel.say(&id, "more").await.unwrap();
        while status_text(&kernel.get(&id).await.unwrap()) != "took more" {
            tokio::task::yield_now().await;
        }
        id
    });
    kernel.kill();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &lost));
    let task = kernel.run(kernel.ended(&id));
    // The message that the turn took goes on with the turn: it is not asked about.
    assert!(status_text(&task).starts_with("more of none at ") && status_text(&task).ends_with(" began 1"), "{task:?}");
    assert_eq!(*lost.lock(), [("more".to_owned(), Seq(1))]);
    kernel.kill();

    // The process dies after the approval is stored and before the agent has begun.
    let (folder, lost) = (tempfile::tempdir().unwrap(), Arc::default());
    let kernel = Kernel::serving(folder.path(), stalled(worker()));
    let id = kernel.run(async {
        let id = asked(&kernel, named("deploy it", "deploy")).await;
        decide(&kernel, &id, Verdict::Approve, "yes").await;
        kernel.reach(&id, TaskState::Working).await;
        id
    });
    kernel.kill();
    let kernel = Kernel::serving(folder.path(), asking(worker(), &lost));
    assert_eq!(status_text(&kernel.run(kernel.ended(&id))), "deploy it of deploy at 1 began 1");
    assert_eq!(*lost.lock(), [("deploy it".to_owned(), Seq(1))], "it is asked about what was approved");
}

/// Asks, and never gets further than the decision.
fn stalled(script: Script) -> Hosted {
    let stalls = Script::new(|turn: Turn, task: TaskHandle| async move {
        let skill = turn.skill().map(str::to_owned);
        let review = Review { skill, ..Review::by(Reviewer::Operator, turn.began) };
        if turn.cause == Cause::Begin {
            let question = Message::text(switchboard_a2a::Role::Agent, "may it?");
            return Ok(task.park_with(question, &review, None).await?);
        }
        task.canceled().await;
        Ok(())
    });
    Hosted::new(AGENT, stalls.with(|manifest| *manifest = script.manifest))
}
