//! Routing in a running kernel: decisions in metadata, conversations, cooldowns and what is journaled of refusals.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, Task, Timestamp};
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::fold::ROUTING_KEY;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::*;
use switchboard_hub::routing::{
    AgentSignals, Availability, DropReason, Drops, Experiment, KeywordMatch, KeywordRule, NoSignals, RoutingDirectory,
    RoutingRules, Track,
};
use switchboard_store::{Durability, Options, SqliteStore};

/// Answers with its name.
struct Named(&'static str, &'static [&'static str]);

impl Agent for Named {
    fn manifest(&self) -> Manifest {
        let tools = self.1.iter().map(|skill| Tool { name: (*skill).to_owned(), ..Tool::default() });
        Manifest::new(self.0, "Says its name").tools(tools)
    }

    async fn run(&self, _turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        Ok(task.complete_with(self.0).await?)
    }
}

struct Fixture {
    engine: Engine,
    clock: SimulatedClock,
    drops: Arc<Drops>,
    _folder: tempfile::TempDir,
}

async fn start(rules: RoutingRules) -> Fixture {
    start_with(rules, Arc::new(NoSignals)).await
}

async fn start_with(rules: RoutingRules, signals: Arc<dyn AgentSignals>) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Process, ..Options::default() };
    let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
    let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let hosted = |name, skills| Hosted::new(name, Named(name, skills));
    let agents = vec![hosted("zoe", &["draw"]), hosted("ann", &["sing"]), hosted("bob", &[])];
    let fixed = Arc::new(FixedDirectory::new(agents, Some("bob".into())));
    let drops = Arc::new(Drops::new(shared.clone()));
    let directory = RoutingDirectory::new(fixed, rules, signals, drops.clone());
    let engine = Engine::start(store, Arc::new(directory), shared, Settings::default()).await.unwrap();
    Fixture { engine, clock, drops, _folder: folder }
}

impl Fixture {
    async fn send(&self, context: &str, hints: Value) -> Result<Task, Error> {
        let mut message = Message::text(Role::User, "hi");
        message.context_id = Some(context.into());
        message.metadata = Some(serde_json::from_value(hints).unwrap());
        let incoming = IncomingMessage {
            address: Address::Root,
            message,
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: false,
        };
        let routed = self.engine.route(&Caller::local(), incoming).await?;
        match self.engine.send(routed).await?.answer().await {
            SendResult::Task(reading) => Ok(reading.into_task().unwrap()),
            SendResult::Message(message) => panic!("no task: {message:?}"),
        }
    }

    fn lines(&self) -> Vec<(String, Value)> {
        let told = |line: JournalLine| (line.topic, serde_json::from_slice(&line.payload).unwrap());
        self.drops.take().into_iter().map(told).collect()
    }
}

fn routing(task: &Task) -> Value {
    let told = task.metadata.as_ref().and_then(|metadata| metadata.get(ROUTING_KEY));
    told.map_or(Value::Null, |told| serde_json::from_str(told.as_str()).unwrap())
}

#[tokio::test]
async fn decisions_are_in_metadata_and_a_conversation_stays_with_its_agent() {
    let fixture = start(RoutingRules { max_targets: 64, ..RoutingRules::default() }).await;
    let plain = fixture.send("c1", json!({})).await.unwrap();
    assert_eq!(routing(&plain), json!({"agent": "bob", "by": "default", "mode": "single"}));
    let drawn = fixture.send("c2", json!({"skill": "draw"})).await.unwrap();
    assert_eq!((&routing(&drawn)["agent"], &routing(&drawn)["by"]), (&json!("zoe"), &json!("skill")));
    let again = fixture.send("c2", json!({})).await.unwrap();
    assert_eq!((&routing(&again)["agent"], &routing(&again)["by"]), (&json!("zoe"), &json!("context")));
    let unknown = fixture.send("c3", json!({"skill": "fly"})).await.unwrap();
    assert_eq!(routing(&unknown), json!({"agent": "bob", "by": "default", "skill": "fly", "mode": "single"}));
    assert_eq!(fixture.lines(), []);
}

/// These agents are down.
struct Down(&'static [&'static str]);

impl AgentSignals for Down {
    fn track(&self, agent: &AgentName) -> Track {
        NoSignals.track(agent)
    }

    fn availability(&self, agent: &AgentName) -> Availability {
        if self.0.contains(&agent.as_str()) { Availability::Down } else { Availability::Up }
    }

    fn experiments(&self) -> Vec<Experiment> {
        Vec::new()
    }
}

#[tokio::test]
async fn the_default_agent_serves_in_place_of_a_keywords_that_is_down_and_is_the_last_resort_itself() {
    let rule = KeywordRule { text: "hi".to_owned(), by: KeywordMatch::Word, agent: Some("ann".into()), skill: None };
    let rules = RoutingRules { keywords: vec![rule], max_targets: 64, ..RoutingRules::default() };
    for (down, expected) in [
        (&[][..], json!({"agent": "ann", "by": "keyword", "mode": "single"})),
        (&["ann"], json!({"agent": "bob", "by": "default", "mode": "single", "leftOut": ["ann"]})),
        (&["ann", "bob"], json!({"agent": "ann", "by": "keyword", "mode": "single"})),
    ] {
        let fixture = start_with(rules.clone(), Arc::new(Down(down))).await;
        assert_eq!(routing(&fixture.send("c", json!({})).await.unwrap()), expected, "{down:?}");
    }
    let fixture =
        start_with(RoutingRules { max_targets: 64, ..RoutingRules::default() }, Arc::new(Down(&["bob"]))).await;
    let task = fixture.send("c", json!({})).await.unwrap();
    assert_eq!(routing(&task), json!({"agent": "bob", "by": "default", "mode": "single"}), "its task waits for it");
}

#[tokio::test]
async fn refusals_are_journaled_once_per_reason_and_key_with_their_count() {
    let cooldowns = [("draw".to_owned(), Duration::from_secs(30))].into();
    let fixture = start(RoutingRules { cooldowns, max_targets: 64, ..RoutingRules::default() }).await;
    fixture.send("c1", json!({"skill": "draw", "cooldownKey": "o/r#5"})).await.unwrap();
    for _ in 0..3 {
        let refused = fixture.send("c2", json!({"skill": "draw", "cooldownKey": "o/r#5"})).await;
        assert!(matches!(refused, Err(Error::CoolingDown { ref key, .. }) if key == "draw:o/r#5"), "{refused:?}");
    }
    fixture.send("c3", json!({"skill": "draw", "cooldownKey": "o/r#6"})).await.unwrap();
    fixture.send("c3", json!({"skill": "draw"})).await.unwrap();
    fixture.send("c4", json!({"skill": "sing"})).await.unwrap();
    fixture.send("c4", json!({"skill": "sing"})).await.unwrap();
    fixture.send("c5", json!({"targets": "zeo"})).await.unwrap_err();
    fixture.send("c5", json!({"targets": "zeo"})).await.unwrap_err();
    fixture.send("c5", json!({"targets": "ann", "skill": "draw"})).await.unwrap_err();
    let shown = |(topic, line): (String, Value)| (topic, line["key"].clone(), line["count"].clone());
    let mut told: Vec<(String, Value, Value)> = fixture.lines().into_iter().map(shown).collect();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        told,
        [
            ("dispatch.dropped.cooldown".to_owned(), json!("draw:o/r#5"), json!(3)),
            ("dispatch.dropped.no_skill".to_owned(), json!("draw"), json!(1)),
            ("dispatch.dropped.target_unresolved".to_owned(), json!("zeo"), json!(2)),
        ]
    );
    assert_eq!(fixture.lines(), [], "each is told once");
    fixture.clock.advance(Duration::from_secs(30));
    fixture.send("c1", json!({"skill": "draw", "cooldownKey": "o/r#5"})).await.unwrap();
}

#[test]
fn drops_of_very_many_keys_are_counted_together() {
    let drops = Drops::new(Arc::new(SimulatedClock::at(Timestamp(1))));
    for key in 0..1_010 {
        drops.record(DropReason::Cooldown, &format!("skill:{key}"), &"ann".into(), "no");
    }
    drops.record(DropReason::Cooldown, "skill:3", &"bob".into(), "no");
    let lines = drops.take();
    assert_eq!(lines.len(), 1_001);
    let find = |key: &str| {
        let read = |line: &JournalLine| -> Value { serde_json::from_slice(&line.payload).unwrap() };
        let line = lines.iter().find(|line| read(line)["key"] == key).unwrap();
        (read(line)["count"].clone(), line.owner.clone())
    };
    assert_eq!(find("other"), (json!(10), Some("ann".into())));
    assert_eq!(find("skill:3"), (json!(2), None), "it was of two callers");
}

#[test]
fn a_drop_of_a_very_long_name_is_a_line_like_any_other() {
    let drops = Drops::new(Arc::new(SimulatedClock::at(Timestamp(1))));
    let long = "ä\u{1}".repeat(40_000);
    drops.record(DropReason::TargetUnresolved, &long, &"ann".into(), &long);
    drops.record(DropReason::Hops, "b", &"ann".into(), "looped");
    let lines = drops.take();
    assert!(lines.iter().all(|line| line.payload.len() < 16 << 10), "it must fit into the journal");
    assert_eq!(lines.len(), 2);
    let known: Vec<String> = (0..3_000).map(|number| format!("agent-{number}")).collect();
    let told = Error::AgentNotFound { asked: "x".to_owned(), known }.to_string();
    assert!(told.len() < 1_000 && told.ends_with("… (3000 in all)"), "{told}");
}
