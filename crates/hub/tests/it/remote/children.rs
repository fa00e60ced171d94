//! Tasks of remote agents below tasks of this server: fan-outs that wait for them, cancellations that reach them, what they
//! have cost, and whose conversations they are.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::extension::{Payload, RESUMPTION};
use switchboard_a2a::{Message, Role};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{Agent, AgentError, Call, Hosted, Manifest, SendResult, TaskHandle, Turn};
use tempfile::TempDir;

use super::script::{Reply, Scripted, card, frame, task};
use super::world::passing;
use crate::running::{Running, START, fanout, folder};

const STEP: Duration = Duration::from_millis(100);

/// Hands on what it gets to the agent `far`, in a conversation that it always calls the same.
struct Asker;

impl Agent for Asker {
    fn manifest(&self) -> Manifest {
        Manifest::new("Asker", "Asks another agent")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.working().await?;
        let message = Message { context_id: Some("shared".into()), ..Message::text(Role::User, turn.text()) };
        let failed = |error: String| AgentError::new(error);
        let called = task.call(Call::new("far", message)).await.map_err(|error| failed(error.to_string()))?;
        let ended = task.release_permit_while(called.end()).await?.map_err(|error| failed(error.to_string()))?;
        let SendResult::Task(ended) = ended else { return Err(failed("a message instead of a task".to_owned())) };
        let ended = ended.into_task().map_err(|error| failed(error.to_string()))?;
        Ok(task.complete_with(ended.status.state.as_str()).await?)
    }
}

/// A server with the agent `near` of its own, `far` at the remote one, and `asker`.
struct World {
    running: Running,
    clock: SimulatedClock,
    _folders: [TempDir; 2],
}

impl World {
    async fn before(remote: &Scripted) -> Self {
        let (data, files) = (folder(), folder());
        let far = format!("  - name: far\n    url: {}\n", remote.url());
        write(files.path(), &format!("agents:\n  - name: near\n    builtin: echo\n{far}"));
        let clock = SimulatedClock::at(START);
        let own = vec![fanout(), Hosted::new("asker", Asker)];
        let running = Running::of_workspace_beside(data.path(), files.path(), &clock, own).await;
        Self { running, clock, _folders: [data, files] }
    }

    /// Begins a root task and returns its id.
    async fn begin(&self, key: &str, message: Value, path: &str) -> String {
        let mut message = message;
        message["role"] = "ROLE_USER".into();
        let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let (status, answer) = self.running.post(path, key, &body).await;
        assert_eq!(status, 200, "{answer}");
        answer["task"]["id"].as_str().unwrap().to_owned()
    }

    async fn fan_out(&self, key: &str, id: &str, context: Option<&str>) -> String {
        let metadata = json!({ "targets": ["near", "far"], "fanout": "all", "force": true, "ticket": 7 });
        let mut message = json!({ "messageId": id, "parts": [{ "text": "go" }], "metadata": metadata });
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        self.begin(key, message, "/message:send").await
    }

    /// Waits until it is known that the remote agent declares what it costs.
    async fn cost_is_declared(&self) {
        let path = "/a2a/far/.well-known/agent-card.json";
        let known = async { while !self.running.get(path, "ann").await.1.to_string().contains(Cost::URI) {} };
        passing(&self.clock, STEP, known).await;
    }

    /// The tree of a task once it fits, while time passes.
    async fn tree(&self, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/tasks/{id}/tree");
        let read = async {
            loop {
                let (status, tree) = self.running.get(&path, "ann").await;
                assert_eq!(status, 200, "{tree}");
                if fits(&tree) {
                    return tree;
                }
            }
        };
        passing(&self.clock, STEP, read).await
    }

    /// The task while it asks. It goes on for a moment when a child has news, and asks again.
    async fn asking_task(&self, id: &str) -> Value {
        let asked = async {
            loop {
                let task = self.task(id).await;
                if task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" {
                    return task;
                }
            }
        };
        passing(&self.clock, STEP, asked).await
    }

    async fn task(&self, id: &str) -> Value {
        let (status, task) = self.running.get(&format!("/tasks/{id}"), "bob").await;
        assert_eq!(status, 200, "{task}");
        task
    }
}

fn write(folder: &Path, agents: &str) {
    std::fs::write(folder.join("agents.yaml"), agents).unwrap();
}

/// The child of an agent.
fn child<'a>(tree: &'a Value, agent: &str) -> &'a Value {
    tree["children"].as_array().unwrap().iter().find(|child| child["agent"] == agent).unwrap_or(&Value::Null)
}

fn asking(state: &str) -> Value {
    let mut waiting = task(state, "m");
    waiting["artifacts"] = json!([]);
    waiting["status"]["message"] = json!({
        "messageId": "q", "role": "ROLE_AGENT", "parts": [{ "text": "log in over there" }],
    });
    waiting
}

#[tokio::test]
async fn a_fan_out_goes_on_when_its_remote_child_has_got_its_credentials_there() {
    let is_there = Arc::new(AtomicBool::new(false));
    let are_there = Arc::clone(&is_there);
    let mut card = card(false);
    card["capabilities"] = json!({ "extensions": [Cost::extension()] });
    let mut done = task("TASK_STATE_COMPLETED", "m");
    done["artifacts"][0]["metadata"] = json!({ Cost::URI: reported() });
    let remote = Scripted::with_card(card, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": asking("TASK_STATE_AUTH_REQUIRED") })),
        "GetTask" if are_there.load(Ordering::SeqCst) => Reply::Result(done.clone()),
        "GetTask" => Reply::Result(asking("TASK_STATE_AUTH_REQUIRED")),
        _ => Reply::Error(-32601),
    })
    .await;
    let world = World::before(&remote).await;
    world.cost_is_declared().await;
    let root = world.fan_out("bob", "m", None).await;
    let waits = world.tree(&root, |tree| tree["state"] == "input_required").await;
    assert_eq!(child(&waits, "near")["state"], "completed", "{waits}");
    assert_eq!(child(&waits, "far")["state"], "auth_required", "{waits}");
    let asked = world.asking_task(&root).await;
    let question = asked["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(question.contains("far") && question.contains("log in over there"), "{asked}");
    // Nobody answers here: the remote agent is looked at, and found to have gone on.
    is_there.store(true, Ordering::SeqCst);
    let done = world.tree(&root, |tree| tree["state"] == "completed").await;
    assert_eq!(child(&done, "far")["state"], "completed", "{done}");
    let ended = world.task(&root).await;
    let of_far = ended["artifacts"].as_array().unwrap().iter().find(|artifact| artifact["name"] == "far").unwrap();
    assert_eq!(of_far["parts"][0]["text"], "made", "{ended}");
    let said = ended["history"].as_array().unwrap().iter().filter(|said| said["role"] == "ROLE_USER").count();
    assert_eq!((said, remote.calls("SendMessage").len()), (1, 1), "no answer was made up: {ended}");
    let billed = json!({ "inputTokens": 7, "outputTokens": 3, "costUsd": 0.5 });
    let usage = &ended["metadata"]["switchboard/usage"];
    assert_eq!(usage["tree"], billed, "it ended while the fan-out waited for an answer: {ended}");
    world.running.stop().await;
}

#[tokio::test]
async fn a_fan_out_tells_no_agent_how_its_message_was_routed_here() {
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => Reply::Result(json!({ "task": asking("TASK_STATE_INPUT_REQUIRED") })),
        ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        ("GetTask", _) => Reply::Result(asking("TASK_STATE_INPUT_REQUIRED")),
        _ => Reply::Error(-32601),
    })
    .await;
    let world = World::before(&remote).await;
    let root = world.fan_out("bob", "m", None).await;
    world.tree(&root, |tree| tree["state"] == "input_required").await;
    // Of an answer too, which routing has read as well.
    let metadata = json!({ "targets": "far", "cooldownKey": "k", "ticket": 8 });
    let answer = json!({ "messageId": "n", "taskId": root, "parts": [{ "text": "so" }], "metadata": metadata });
    world.begin("bob", answer, "/message:send").await;
    world.tree(&root, |tree| tree["state"] == "completed").await;
    let sent = remote.calls("SendMessage");
    let told: Vec<&Value> = sent.iter().map(|asked| &asked.body["params"]["message"]["metadata"]).collect();
    let [first, answer] = told[..] else { panic!("{told:?}") };
    assert_eq!((&first["ticket"], &answer["ticket"]), (&json!(7), &json!(8)), "the rest is passed on");
    for key in ["targets", "fanout", "force", "cooldownKey"] {
        for asked in &sent {
            let params = &asked.body["params"];
            let told = [&params["message"]["metadata"][key], &params["metadata"][key]];
            assert_eq!(told, [&Value::Null; 2], "another server would route by it: {key}");
        }
    }
    world.running.stop().await;
}

/// A remote agent whose task stays as it is until it is canceled.
async fn canceled_by_request(now: Value) -> Scripted {
    let is_canceled = AtomicBool::new(false);
    Scripted::start(false, move |asked, _| {
        if asked.method() == "CancelTask" {
            is_canceled.store(true, Ordering::SeqCst);
        }
        let canceled = task("TASK_STATE_CANCELED", "m");
        match asked.method() {
            "SendMessage" => Reply::Result(json!({ "task": now })),
            "CancelTask" => Reply::Result(canceled),
            "GetTask" if is_canceled.load(Ordering::SeqCst) => Reply::Result(canceled),
            "GetTask" => Reply::Result(now.clone()),
            _ => Reply::Error(-32601),
        }
    })
    .await
}

#[tokio::test]
async fn a_canceled_root_ends_the_task_of_its_child_at_the_remote_server() {
    for (state, now) in [
        ("working", task("TASK_STATE_WORKING", "m")),
        ("input_required", asking("TASK_STATE_INPUT_REQUIRED")),
        ("auth_required", asking("TASK_STATE_AUTH_REQUIRED")),
    ] {
        for is_fan_out in [true, false] {
            let remote = canceled_by_request(now.clone()).await;
            let world = World::before(&remote).await;
            let message = json!({ "messageId": "m", "parts": [{ "text": "go" }] });
            let root = match is_fan_out {
                true => world.fan_out("bob", "m", None).await,
                false => world.begin("bob", message, "/a2a/asker/message:send").await,
            };
            let tree = world.tree(&root, |tree| child(tree, "far")["state"] == state).await;
            // Which task to cancel there is known once that was told.
            let path = format!("/api/tasks/{}", child(&tree, "far")["task"].as_str().unwrap());
            let is_named =
                async { while !world.running.get(&path, "ann").await.1.to_string().contains("switchboard/remote") {} };
            passing(&world.clock, STEP, is_named).await;
            let (path, nothing) = (format!("/tasks/{root}:cancel"), json!({}));
            let (status, canceled) = passing(&world.clock, STEP, world.running.post(&path, "bob", &nothing)).await;
            assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
            world.tree(&root, |tree| child(tree, "far")["state"] == "canceled").await;
            passing(&world.clock, STEP, remote.called("CancelTask", 1)).await;
            assert_eq!(remote.calls("CancelTask")[0].body["params"]["id"], "r", "{state}");
            let (_, page) = world.running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
            assert_eq!(page["items"], json!([]), "nothing is left there: {page}");
            world.running.stop().await;
        }
    }
}

fn reported() -> Value {
    json!({ "costUsd": 0.5, "usage": { "input_tokens": 7, "output_tokens": 3 } })
}

/// An agent that reports what it has used on its artifact, in its status and in the metadata of its task, and whose
/// connection is lost: with numbers after the end was heard of and something before it was not; without them before it.
async fn reporting_twice(is_numbered: bool) -> Scripted {
    let mut card = card(false);
    let declared =
        if is_numbered { json!([Cost::extension(), { "uri": RESUMPTION }]) } else { json!([Cost::extension()]) };
    card["capabilities"] = json!({ "streaming": true, "extensions": declared });
    let usage = json!({ "inputTokens": 7, "outputTokens": 3, "costUsd": 0.5 });
    let mut counted = usage.clone();
    (counted["own"], counted["tree"]) = (usage.clone(), usage);
    let metadata = json!({ "switchboard/usage": counted });
    let artifact = json!({ "artifactId": "a", "parts": [{ "text": "made" }], "metadata": { Cost::URI: reported() } });
    let update =
        json!({ "artifactUpdate": { "taskId": "r", "contextId": "rc", "artifact": artifact, "lastChunk": true } });
    let message = json!({
        "messageId": "e", "role": "ROLE_AGENT", "parts": [{ "text": "done" }], "metadata": { Cost::URI: reported() },
    });
    let end = json!({ "state": "TASK_STATE_COMPLETED", "message": message });
    let ended = json!({ "statusUpdate": { "taskId": "r", "contextId": "rc", "status": end, "metadata": metadata } });
    let almost = json!({ "statusUpdate": {
        "taskId": "r", "contextId": "rc", "status": { "state": "TASK_STATE_WORKING" }, "metadata": metadata,
    } });
    let mut begun = task("TASK_STATE_WORKING", "m");
    begun["artifacts"] = json!([]);
    let mut stored = task("TASK_STATE_COMPLETED", "m");
    (stored["status"], stored["metadata"]) = (end.clone(), metadata.clone());
    stored["artifacts"] = json!([artifact]);
    let numbered = |number: u64, result: &Value| frame(is_numbered.then_some(number), result.clone());
    let first = vec![numbered(1, &json!({ "task": begun })), numbered(2, &update)];
    let late = if is_numbered { vec![numbered(4, &ended)] } else { Vec::new() };
    let first = [first, late].concat();
    let again = if is_numbered { Vec::new() } else { vec![numbered(2, &update)] };
    let rest = [again, vec![numbered(3, &almost), numbered(4, &ended), numbered(4, &ended)]].concat();
    Scripted::with_card(card, move |asked, _| match asked.method() {
        "SendStreamingMessage" => Reply::Events(first.clone()),
        "SubscribeToTask" => Reply::Events(rest.clone()),
        "GetTask" => Reply::Result(stored.clone()),
        _ => Reply::Error(-32601),
    })
    .await
}

#[tokio::test]
async fn what_a_remote_child_reports_twice_is_billed_once() {
    for is_numbered in [true, false] {
        let remote = reporting_twice(is_numbered).await;
        let world = World::before(&remote).await;
        // That it streams is known with it.
        world.cost_is_declared().await;
        let root = world.fan_out("bob", "m", None).await;
        let tree = world.tree(&root, |tree| tree["state"] == "completed").await;
        assert!(!remote.calls("SubscribeToTask").is_empty(), "the connection was lost");
        let far = child(&tree, "far");
        let billed = json!({ "inputTokens": 7, "outputTokens": 3, "costUsd": 0.5 });
        for (key, value) in billed.as_object().unwrap() {
            assert_eq!((&far["own"][key], &tree["total"][key]), (value, value), "numbered {is_numbered}: {tree}");
        }
        let below = world.task(far["task"].as_str().unwrap()).await;
        assert_eq!(below["metadata"]["switchboard/usage"]["costUsd"], 0.5, "{below}");
        let outcomes = async {
            loop {
                let (_, page) = world.running.get("/api/feed?from=oldest&topic=outcome.%23", "ann").await;
                let items = page["items"].as_array().unwrap().iter().map(|item| item["payload"].clone());
                let of_far: Vec<Value> = items.filter(|outcome| outcome["agent"] == "far").collect();
                if !of_far.is_empty() {
                    return of_far;
                }
            }
        };
        let outcomes = passing(&world.clock, STEP, outcomes).await;
        assert_eq!((outcomes.len(), &outcomes[0]["costUsd"]), (1, &json!(0.5)), "{outcomes:?}");
        world.running.stop().await;
    }
}

#[tokio::test]
async fn two_payers_share_no_conversation_at_a_remote_agent_and_see_no_tree_of_the_other() {
    let remote = Scripted::start(false, |asked, before| {
        let mut done = task("TASK_STATE_COMPLETED", "m");
        done["id"] = format!("r{before}").into();
        let given = asked.body["params"]["message"]["contextId"].as_str();
        done["contextId"] = given.map_or_else(|| format!("rc{before}"), str::to_owned).into();
        match asked.method() {
            "SendMessage" => Reply::Result(json!({ "task": done })),
            _ => Reply::Error(-32601),
        }
    })
    .await;
    let world = World::before(&remote).await;
    let mut roots = Vec::new();
    for round in ["one", "two"] {
        for payer in ["bob", "bea"] {
            // The same words of both, in everything that a caller or a model may choose.
            let message = json!({ "messageId": round, "contextId": "shared", "parts": [{ "text": "go" }] });
            let by_agent = world.begin(payer, message, "/a2a/asker/message:send").await;
            world.tree(&by_agent, |tree| tree["state"] == "completed").await;
            let by_fan_out = world.fan_out(payer, &format!("{round} of all"), Some("shared")).await;
            world.tree(&by_fan_out, |tree| tree["state"] == "completed").await;
            roots.extend([(payer, by_agent), (payer, by_fan_out)]);
        }
    }
    let sent = remote.calls("SendMessage");
    let contexts: Vec<Option<&str>> =
        sent.iter().map(|asked| asked.body["params"]["message"]["contextId"].as_str()).collect();
    // Those of an agent on behalf of a payer, and of the payer itself: four conversations, each gone on with.
    let own = [Some("rc0"), Some("rc1"), Some("rc2"), Some("rc3")];
    assert_eq!(contexts, [[None; 4], own].concat());
    let ids: Vec<&Value> = sent.iter().map(|asked| &asked.body["params"]["message"]["messageId"]).collect();
    assert!(ids.iter().enumerate().all(|(number, id)| !ids[..number].contains(id)), "{ids:?}");
    for (payer, root) in roots {
        let other = if payer == "bob" { "bea" } else { "bob" };
        let (status, tree) = world.running.get(&format!("/api/tasks/{root}/tree"), payer).await;
        assert_eq!((status, tree["children"].as_array().map(|below| !below.is_empty())), (200, Some(true)), "{tree}");
        // The task of an agent on behalf of the payer has no id for the payer either.
        let all = world.tree(&root, |_| true).await;
        let below = child(&all, "far")["task"].as_str().unwrap();
        for id in [root.as_str(), below] {
            for path in [format!("/api/tasks/{id}/tree"), format!("/api/tasks/{id}"), format!("/tasks/{id}")] {
                let (status, answer) = world.running.get(&path, other).await;
                assert_eq!(status, 404, "{other} {path}: {answer}");
            }
        }
    }
    world.running.stop().await;
}
