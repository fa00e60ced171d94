//! What the program of a task may send with its token to those it has called, through a fan-out too, and what a child gets
//! of the message that its parent had.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Json, Message, Metadata, Part, TaskId, TaskState};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};

use crate::kernel::*;

const START: switchboard_a2a::Timestamp = switchboard_a2a::Timestamp(1_800_000_000_000);

/// Routes what names several targets to the server's own `~all`, as a hub does, and what speaks of folding to `skilled`.
struct Routing(FixedDirectory);

impl Directory for Routing {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        asked: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let decided = |agent: &str, decision: serde_json::Value| {
            let hosted = self.0.find(&agent.into()).unwrap();
            Ok(Resolved { decision: Json::from_serialize(&decision).ok(), ..Resolved::new(hosted) })
        };
        match asked.filter(|_| *address == Address::Root) {
            Some(asked) if asked.hints.targets.len() > 1 => {
                let targets: Vec<&str> = asked.hints.targets.iter().map(AgentName::as_str).collect();
                decided("~all", serde_json::json!({ "agent": "~all", "targets": targets, "policy": "all" }))
            }
            Some(asked) if asked.message.joined_text().starts_with("fold") => {
                decided("skilled", serde_json::json!({ "agent": "skilled", "by": "keyword", "skill": "fold" }))
            }
            _ => self.0.resolve(address, caller, asked),
        }
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.0.find(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.0.agents()
    }
}

/// Asks for a token and works until it is canceled.
fn coder(tokens: &Arc<Mutex<Vec<String>>>) -> Script {
    let tokens = tokens.clone();
    Script::new(move |_, task: TaskHandle| {
        let tokens = tokens.clone();
        async move {
            let issued = task.issue_token().await?;
            tokens.lock().extend(issued);
            task.working().await?;
            task.canceled().await;
            Err(Stopped::Canceled.into())
        }
    })
}

/// Asks what its text says, and completes with the skill of its turn and the answer.
fn helper() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let skill = turn.skill().unwrap_or("none").to_owned();
        let answer = match turn.text().as_str() {
            "ask" => task.ask("which?").await?.joined_text(),
            "approve" => {
                let mut question = message("may I?");
                let data = serde_json::json!({ "approvalId": "a1", "tool": "Bash" });
                question.parts.push(Part::data(Json::from_serialize(&data).unwrap()));
                task.ask_message(question).await?.joined_text()
            }
            "review" => {
                let review = Review::by(Reviewer::Caller, turn.seq);
                task.ask_with(message("may I?"), &review).await?.message.joined_text()
            }
            "log in" => task.authorize("log in").await?.joined_text(),
            _ => {
                let modes = turn.accepted_output_modes.join(",");
                let repo = turn.metadata.as_ref().and_then(|all| all.get("repo")).map(|repo| repo.as_str().to_owned());
                format!("{modes} {}", repo.unwrap_or_default())
            }
        };
        Ok(task.complete_with(format!("{skill} {answer}")).await?)
    })
}

/// Hands its message to `helper`, as its owner, and answers its question with the next message.
fn all() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let sent = Message { context_id: Some(task.context_id().clone()), ..message(&turn.text()) };
        let mut call = Call { run_as: CallOwner::Owner, ..Call::new("helper", sent) };
        call.metadata = turn.metadata.clone();
        call.accepted_output_modes = turn.accepted_output_modes.clone();
        let mut called = task.call(call).await?;
        let failed = |error: Error| AgentError::new(error.to_string());
        while !called.snapshot().status.state.is_interrupted() {
            if called.next().await.map_err(failed)?.is_none() {
                break;
            }
        }
        if !called.snapshot().status.state.is_terminal() {
            let answer = task.ask("what it asks").await?;
            if let Err(error) = called.answer(answer, None).await {
                return Ok(task.fail(error.to_string()).await?);
            }
        }
        match called.end().await.map_err(failed)? {
            SendResult::Task(ended) => Ok(task.complete_with(status_text(&ended.into_task().map_err(failed)?)).await?),
            SendResult::Message(_) => Err(AgentError::new("a message")),
        }
    })
}

struct World {
    kernel: Kernel,
    tokens: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let (folder, tokens) = (tempfile::tempdir().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let delegates = ["helper", "skilled/fold"].map(|entry| entry.parse().unwrap());
        let delegation = AgentDelegation { delegates: Delegates::Only(delegates.to_vec()), ..Default::default() };
        let switches = Switches { delegation, ..Switches::default() };
        let agents = vec![
            Hosted::serving("coder", Served::new(coder(&tokens)).switches(switches)),
            Hosted::new("helper", helper()),
            Hosted::new("skilled", helper()),
            Hosted::new("other", helper()),
            Hosted::new("~all", all()),
        ];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let clock = SimulatedClock::at(START);
        let directory = Arc::new(Routing(FixedDirectory::new(agents, None)));
        let started = Engine::start(store, directory, Arc::new(clock.clone()), Settings::default());
        let engine = runtime.block_on(started).unwrap();
        Self { kernel: Kernel { engine, clock, runtime }, tokens, _folder: folder }
    }

    /// A task of a caller at `coder`, and what its program is.
    async fn begin(&self, caller: &Caller) -> (TaskId, Caller) {
        let known = self.tokens.lock().len();
        let incoming = IncomingMessage { address: Address::Agent("coder".into()), ..request(message("work")) };
        let task = self.kernel.send_as(caller, incoming).await.unwrap();
        let token = loop {
            if let Some(token) = self.tokens.lock().get(known).cloned() {
                break token;
            }
            tokio::task::yield_now().await;
        };
        (task.id().clone(), self.kernel.engine.task_caller(&token).unwrap().0)
    }

    async fn call(&self, caller: &Caller, to: &str, message: Message) -> Result<Submitted, Error> {
        let address = if to.is_empty() { Address::Root } else { Address::Agent(to.into()) };
        self.kernel.send_as(caller, IncomingMessage { address, ..request(message) }).await
    }

    async fn stop(&self, parent: &TaskId) {
        self.kernel.cancel(parent).await.unwrap();
    }
}

fn with(text: &str, metadata: serde_json::Value) -> Message {
    let metadata: Metadata = Json::from_serialize(&metadata).unwrap().read().unwrap();
    Message { metadata: Some(metadata), ..message(text) }
}

fn follow_up(id: &TaskId, sent: Message) -> Message {
    Message { task_id: Some(id.clone()), ..sent }
}

fn refused(sent: Result<Submitted, Error>) -> String {
    match sent.map(|sent| sent.id().clone()) {
        Err(Error::Delegation(refused)) if refused.kind == RefusalKind::NotAllowed => refused.problem.clone(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_skill_that_delegates_do_not_name_is_refused_on_every_way_to_it() {
    let world = World::new();
    world.kernel.run(async {
        let (parent, own) = world.begin(&Caller::local()).await;
        let several =
            |skill: Option<&str>| with("x", serde_json::json!({"targets": ["helper", "skilled"], "skill": skill}));
        let told = refused(world.call(&own, "", several(None)).await);
        assert!(told.contains("agent coder may not call skilled without a skill"), "{told}");
        let told = refused(world.call(&own, "", several(Some("deploy"))).await);
        assert!(told.contains("agent coder may not call skilled for that skill"), "{told}");
        answer_task(&world.call(&own, "", several(Some("fold"))).await.unwrap()).await;
        let told = refused(world.call(&own, "", with("x", serde_json::json!({"targets": ["helper", "other"]}))).await);
        assert!(told.contains("agent coder may not call other"), "{told}");
        // A keyword picks the skill, and the agent works under it.
        let folded = answer_task(&world.call(&own, "", message("fold this")).await.unwrap()).await;
        assert!(status_text(&folded).starts_with("fold "), "{}", status_text(&folded));

        let asked = |text| with(text, serde_json::json!({"skill": "fold"}));
        let child = world.call(&own, "skilled", asked("ask")).await.unwrap();
        assert_eq!(answer_task(&child).await.status.state, TaskState::InputRequired);
        for field in ["skill", "skillHint"] {
            let other = with("this", serde_json::json!({field: "deploy"}));
            let told = refused(world.call(&own, "skilled", follow_up(child.id(), other)).await);
            assert!(told.contains("may not call skilled for that skill"), "{told}");
        }
        let answered = world.call(&own, "skilled", follow_up(child.id(), message("this"))).await.unwrap();
        assert_eq!(status_text(&answer_task(&answered).await), "fold this");

        let child = world.call(&own, "", {
            let hints = serde_json::json!({"targets": ["helper", "skilled"], "skill": "fold"});
            with("ask", hints)
        });
        let child = child.await.unwrap();
        assert_eq!(answer_task(&child).await.status.state, TaskState::InputRequired);
        let other = with("this", serde_json::json!({"skill": "deploy"}));
        refused(world.call(&own, "", follow_up(child.id(), other)).await);
        let answered = world.call(&own, "", follow_up(child.id(), message("this"))).await.unwrap();
        assert!(status_text(&answer_task(&answered).await).ends_with("this"));
        world.stop(&parent).await;
    });
}

#[test]
fn an_approval_is_not_given_with_a_token_nor_through_a_fan_out() {
    let world = World::new();
    world.kernel.run(async {
        let (parent, own) = world.begin(&Caller::local()).await;
        for question in ["approve", "review", "log in"] {
            let child = world.call(&own, "helper", message(question)).await.unwrap();
            let asked = loop {
                let seen = world.kernel.engine.get(&Address::Root, &own, child.id()).await.unwrap();
                let seen = seen.into_task().unwrap();
                if seen.status.state.is_interrupted() {
                    break seen;
                }
                tokio::task::yield_now().await;
            };
            let told = refused(world.call(&own, "helper", follow_up(child.id(), message("yes"))).await);
            assert!(told.contains("waits for an approval, which no task token gives"), "{told}");
            let after = world.kernel.engine.get(&Address::Root, &own, child.id()).await.unwrap().into_task().unwrap();
            assert_eq!((after.status, after.history.len()), (asked.status, asked.history.len()), "nothing was taken");
        }
        let both = |text| with(text, serde_json::json!({"targets": ["helper", "skilled"], "skill": "fold"}));
        let child = world.call(&own, "", both("approve")).await.unwrap();
        assert_eq!(answer_task(&child).await.status.state, TaskState::InputRequired);
        let answered = world.call(&own, "", follow_up(child.id(), message("yes"))).await.unwrap();
        let ended = answer_task(&answered).await;
        assert!(status_text(&ended).contains("which no task token gives"), "{}", status_text(&ended));
        world.stop(&parent).await;

        // Of a caller's own fan-out the approval is the caller's to give.
        let child = world.call(&Caller::local(), "", both("approve")).await.unwrap();
        assert_eq!(answer_task(&child).await.status.state, TaskState::InputRequired);
        let answered = world.call(&Caller::local(), "", follow_up(child.id(), message("yes"))).await.unwrap();
        assert!(status_text(&answer_task(&answered).await).ends_with("yes"));
    });
}

#[test]
fn a_child_gets_the_metadata_and_the_output_modes_that_its_parent_hands_on() {
    let world = World::new();
    world.kernel.run(async {
        let mut incoming = request(with("x", serde_json::json!({"targets": ["helper", "skilled"]})));
        incoming.metadata = with("", serde_json::json!({"repo": "api"})).metadata;
        incoming.accepted_output_modes = vec!["text/plain".to_owned()];
        let sent = world.kernel.send_as(&Caller::local(), incoming).await.unwrap();
        assert_eq!(status_text(&answer_task(&sent).await), r#"none text/plain "api""#);
    });
}

#[test]
fn no_payer_reads_or_joins_the_children_of_another() {
    let world = World::new();
    let caller = |name: &str| Caller { id: name.into(), ..Caller::local() };
    world.kernel.run(async {
        let (first, ann) = world.begin(&caller("ann")).await;
        let (second, bob) = world.begin(&caller("bob")).await;
        let shared = |text| Message { context_id: Some("shared".into()), ..message(text) };
        let key = |sent: Message, key: &str| IncomingMessage {
            address: Address::Agent("helper".into()),
            idempotency_key: Some(key.to_owned()),
            ..request(sent)
        };
        let theirs = world.kernel.send_as(&ann, key(shared("ask"), "k")).await.unwrap();
        assert_eq!(answer_task(&theirs).await.status.state, TaskState::InputRequired);
        let own = world.kernel.send_as(&bob, key(shared("ask"), "k")).await.unwrap();
        assert_ne!(own.id(), theirs.id(), "the same key, conversation and agent");
        assert_eq!(answer_task(&own).await.status.state, TaskState::InputRequired);
        let root = Address::Root;
        for id in [theirs.id(), &first] {
            assert!(matches!(world.kernel.engine.get(&root, &bob, id).await, Err(Error::TaskNotFound(_))));
            let joined = world.call(&bob, "helper", follow_up(id, message("mine"))).await;
            assert!(matches!(joined.map(drop), Err(Error::TaskNotFound(_))));
            let referring = Message { reference_task_ids: vec![id.clone()], ..message("x") };
            assert!(world.call(&bob, "helper", referring).await.is_err());
        }
        for id in [&first, &second] {
            world.kernel.engine.cancel_any(id).await.unwrap();
        }
    });
}
