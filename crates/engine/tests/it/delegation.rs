//! What comes with a message besides its text: the delegation chain, the routing decision, a deadline.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use switchboard_a2a::{Json, Message, Metadata, TaskState, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::{Event, Received};
use switchboard_engine::fold::{Fold, ROUTING_KEY};
use switchboard_engine::store::TaskIdentity;
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};

use crate::kernel::*;

fn chained(chain: &str) -> Message {
    let mut metadata = Metadata::default();
    metadata.insert(CHAIN_KEY, Json::parse(chain).unwrap());
    Message { metadata: Some(metadata), ..message("hi") }
}

fn chain(hops: usize, more: &str) -> String {
    let hops: Vec<_> = (0..hops).map(|hop| format!(r#"{{"node":"n","agent":"a","task":"{hop}"}}"#)).collect();
    format!(r#"{{"root":{{"node":"n","task":"t"}},"hops":[{}]{more}}}"#, hops.join(","))
}

#[test]
fn a_chain_is_read_within_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        delegation: DelegationLimits { max_depth: 100, ..DelegationLimits::default() },
        ..Settings::default()
    };
    let script = Script::new(|_, task| async move { Ok(task.complete_with("done").await?) });
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        for good in [chain(0, ""), chain(64, ""), chain(1, r#","budget":{"usd":1}"#)] {
            answer_task(&kernel.try_send(chained(&good)).await.unwrap()).await;
        }
        let long = format!(r#","budget":"{}""#, "x".repeat(8 << 10));
        for (bad, problem) in [
            (chain(65, ""), "65 hops are more than the 64"),
            (chain(0, &long), "bytes are more than the 8192"),
            (r#"{"hops":[]}"#.to_owned(), "missing field `root`"),
            (r#""a""#.to_owned(), "must be {root"),
            (chain(0, r#","deadline":"soon""#), "RFC 3339"),
        ] {
            let Err(Error::Invalid { field, problem: told }) = kernel.try_send(chained(&bad)).await else {
                panic!("accepted: {bad}")
            };
            assert!(field.ends_with(CHAIN_KEY) && told.contains(problem), "{field}: {told}");
        }
    });
}

#[test]
fn the_earlier_of_two_deadlines_ends_a_task_and_a_restart_keeps_it() {
    let hour = Duration::from_secs(3_600);
    for (limit, own, earlier) in [(None, 1, 1), (Some(2), 1, 1), (Some(1), 2, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let asks = || {
            Script::new(|_, task: TaskHandle| async move {
                task.ask("well?").await?;
                Ok(())
            })
        };
        let settings = Settings { deadline: limit.map(|hours| hour * hours), ..Settings::default() };
        let kernel = Kernel::with_settings(folder.path(), asks(), settings.clone());
        let deadline = Timestamp(kernel.engine.clock().now().0 + i64::from(own) * 3_600_000);
        let id = kernel.run(async {
            let sent = kernel.try_send(chained(&chain(1, &format!(r#","deadline":"{deadline}""#)))).await.unwrap();
            kernel.reach(sent.id(), TaskState::InputRequired).await;
            sent.id().clone()
        });
        kernel.kill();
        let kernel = Kernel::with_settings(folder.path(), asks(), settings);
        kernel.run(async {
            kernel.clock.advance(hour * earlier - Duration::from_secs(1));
            kernel.say(&id, "wait").await.unwrap();
            kernel.reach(&id, TaskState::InputRequired).await;
            kernel.clock.advance(Duration::from_secs(2));
            kernel.engine.sweep().await;
            let ended = kernel.get(&id).await.unwrap();
            assert_eq!((ended.status.state, reason(&ended).as_str()), (TaskState::Failed, "timed_out"));
        });
    }
}

/// Picks the only agent and says why.
struct Explaining(FixedDirectory);

impl Directory for Explaining {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        request: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let decision = Some(Json::parse(r#"{"by":"weight"}"#).unwrap());
        Ok(Resolved { decision, ..self.0.resolve(address, caller, request)? })
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.0.find(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.0.agents()
    }
}

#[test]
fn the_routing_decision_is_shown_to_the_caller_and_to_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options { durability: Durability::Process, ..Options::default() };
    let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
    let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let routing = turn.routing.map(|routing| routing.as_str().to_owned());
        Ok(task.complete_with(routing.unwrap_or_default()).await?)
    });
    let directory = Arc::new(Explaining(FixedDirectory::new(vec![Hosted::new(AGENT, script)], None)));
    let started = Engine::start(store, directory, Arc::new(clock.clone()), Settings::default());
    let engine = runtime.block_on(started).unwrap();
    let kernel = Kernel { engine, clock, runtime };
    kernel.run(async {
        let task = answer_task(&kernel.send("hi").await).await;
        assert_eq!(status_text(&task), r#"{"by":"weight"}"#);
        assert_eq!(task.metadata.unwrap().get(ROUTING_KEY).unwrap().as_str(), r#"{"by":"weight"}"#);
    });
}

#[test]
fn an_approved_skill_stays_approved_for_the_task() {
    let task = TaskIdentity {
        id: "t".into(),
        owner: "ann".into(),
        agent: "a".into(),
        context: "c".into(),
        lineage: Default::default(),
    };
    let received = |decision: Option<Decision>| {
        let plain = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[]},"at":"2027-01-15T08:00:00.000Z"}"#;
        let received: Received = serde_json::from_str(plain).unwrap();
        assert_eq!(
            serde_json::to_string(&received).unwrap().len(),
            plain.len(),
            "nothing is written that is not there"
        );
        Event::Received(Arc::new(Received { decision, by: Some("operator".into()), ..received }))
    };
    let asks = || {
        let line = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_AUTH_REQUIRED"}}}"#;
        Event::decode(line.as_bytes()).unwrap()
    };
    let decided = |verdict| Decision { turn: Some(Seq(1)), skill: Some("deploy".to_owned()), verdict };
    let mut fold = Fold::new(&task);
    let events = [received(None), asks(), received(Some(decided(Verdict::Reject)))];
    for (seq, event) in (1..).zip(&events) {
        fold.apply(Seq(seq), event);
    }
    assert!(fold.kernel.approved.is_empty(), "it was rejected");
    fold.apply(Seq(4), &asks());
    fold.apply(Seq(5), &received(Some(decided(Verdict::Approve))));
    let mut fold = Fold::from_snapshot(&fold.snapshot()).unwrap();
    fold.apply(Seq(6), &asks());
    fold.apply(Seq(7), &received(None));
    assert!(fold.kernel.approved.contains("deploy"), "a restart keeps it, and so does the next turn");
    let current = fold.kernel.current.unwrap().received;
    assert_eq!(current.decision, None, "the decision was the last turn's");
}

#[test]
fn a_decision_is_known_to_the_runs_that_go_on_with_other_answers() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let verdict = turn.decision.as_ref().map(|decision| decision.verdict);
        // It asks and returns: every answer is a run of its own.
        match (turn.text().as_str(), verdict) {
            ("blue", Some(Verdict::Approve)) => task.complete_with("blue, as approved").await?,
            (_, Some(Verdict::Approve)) => drop(Box::pin(task.ask("which colour?")).now_or_never()),
            _ => {
                let review = Review::by(Reviewer::Operator, turn.seq);
                drop(Box::pin(task.ask_with(message("may I?"), &review)).now_or_never());
            }
        }
        Ok(())
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("paint").await;
        kernel.reach(sent.id(), TaskState::AuthRequired).await;
        let answer = ReviewAnswer { verdict: Verdict::Approve, message: message("yes") };
        kernel.engine.answer(&Caller::local(), sent.id(), Seq(2), answer).await.unwrap();
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        kernel.say(sent.id(), "blue").await.unwrap();
        let done = kernel.reach(sent.id(), TaskState::Completed).await;
        assert_eq!(status_text(&done), "blue, as approved");
    });
}
