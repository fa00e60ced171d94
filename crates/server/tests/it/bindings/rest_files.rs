//! Files over v0.3 REST with Python's SDK, which encodes them as base64 twice and expects the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use switchboard_a2a::{Artifact, Part, PartContent, RestFiles};
use switchboard_engine::{Agent, AgentError, Hosted, Manifest, Replies, Served, Switches, TaskHandle, Turn};

use super::agents::manifest;
use super::client::Ask;
use super::dialects::{Operation, TestDialect};
use super::world::{Plan, World};

/// As httpx introduces itself, with which Python's SDK calls.
const PYTHON: &str = "python-httpx/0.28.1";
const NODE: &str = "node";
/// What the agent sends, and most files of these tests: no text, so that a reader that takes it for text fails.
const EVERY: [u8; 4] = [0, 255, 254, 10];

/// Tells what the files it gets hold, and sends one.
struct Inspector(Replies);

impl Agent for Inspector {
    fn manifest(&self) -> Manifest {
        manifest("inspector", self.0)
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let seen = turn.message.parts.iter().filter_map(|part| match &part.content {
            PartContent::Raw(bytes) => Some(format!("{bytes:?}")),
            _ => None,
        });
        let seen: Vec<String> = seen.collect();
        let parts = vec![Part::text(seen.join(" ")), Part::new(PartContent::Raw(EVERY.to_vec()))];
        if self.0 == Replies::Message {
            return Ok(task.reply(parts).await?);
        }
        task.artifact(Artifact::new(parts)).await?;
        Ok(task.complete().await?)
    }
}

async fn world(setting: RestFiles) -> World {
    let switches = || Switches { v03_rest_files: setting, ..Switches::default() };
    let hosted = |name, replies| Hosted::serving(name, Served::new(Inspector(replies)).switches(switches()));
    let agents = vec![hosted("worker", Replies::Task), hosted("talker", Replies::Message)];
    Plan { agents: Some(agents), ..Plan::default() }.start().await
}

fn once(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn twice(bytes: &[u8]) -> String {
    once(once(bytes).as_bytes())
}

/// A message of v0.3 REST with files, encoded by the test.
fn message(files: &[String]) -> Value {
    let mut message = TestDialect::RestV03.message("inspect");
    for file in files {
        message["content"].as_array_mut().unwrap().push(json!({"file": {"fileWithBytes": file}}));
    }
    json!({"message": message, "configuration": {"blocking": true}})
}

fn send(world: &World, agent: &str, user_agent: &str, files: &[String]) -> Ask {
    TestDialect::RestV03.ask(world, agent, Operation::Send(message(files))).header("user-agent", user_agent)
}

/// What the agent saw, and the file it sent as it came.
async fn exchanged(ask: Ask) -> (String, String) {
    let task = TestDialect::RestV03.sent_task(&ask.reply().await);
    of_parts(&task["artifacts"][0]["parts"])
}

fn of_parts(parts: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&parts[0]["text"]), text(&parts[1]["file"]["fileWithBytes"]))
}

#[tokio::test]
async fn files_of_pythons_sdk_arrive_as_they_were_sent_and_can_be_read_by_it() {
    let world = world(RestFiles::Auto).await;
    // A file whose content is base64 itself, by chance or on purpose, keeps it.
    for content in [&EVERY[..], b"plain text", b"test", once(&EVERY).as_bytes()] {
        let seen = exchanged(send(&world, "", PYTHON, &[twice(content)])).await;
        assert_eq!(seen, (format!("{content:?}"), twice(&EVERY)));
    }
    let task = TestDialect::RestV03.sent_task(&send(&world, "", PYTHON, &[twice(&EVERY)]).reply().await);
    let id = task["id"].as_str().unwrap();
    assert_eq!(task["history"][0]["content"][1]["file"]["fileWithBytes"], twice(&EVERY));
    // Later requests have no file to tell by.
    let python = |operation| TestDialect::RestV03.ask(&world, "", operation).header("user-agent", PYTHON);
    let got = TestDialect::RestV03.result(&python(Operation::Get(id, None)).reply().await);
    assert_eq!(of_parts(&got["artifacts"][0]["parts"]).1, twice(&EVERY));
    let list = TestDialect::RestV03.ask(&world, "", Operation::List).header("user-agent", PYTHON);
    let list = TestDialect::RestV03.result(&list.reply().await);
    assert_eq!(list["tasks"][0]["history"][0]["content"][1]["file"]["fileWithBytes"], twice(&EVERY));
    let reply = TestDialect::RestV03.result(&send(&world, "talker", PYTHON, &[]).reply().await);
    assert_eq!(of_parts(&reply["message"]["content"]).1, twice(&EVERY));
}

#[tokio::test]
async fn streams_to_pythons_sdk_carry_files_as_it_reads_them_and_to_others_as_they_are() {
    let world = world(RestFiles::Auto).await;
    for (user_agent, encode) in [(PYTHON, twice as fn(&[u8]) -> String), (NODE, once)] {
        let stream = |agent| {
            let ask = TestDialect::RestV03.ask(&world, agent, Operation::Stream(message(&[encode(&EVERY)])));
            ask.header("user-agent", user_agent).events()
        };
        let frames = stream("").await.rest().await;
        assert_eq!(TestDialect::RestV03.story(&frames).last().unwrap(), "statusUpdate completed");
        let (_, task) = TestDialect::RestV03.event(&frames[0]);
        assert_eq!(task["history"][0]["content"][1]["file"]["fileWithBytes"], encode(&EVERY));
        let made =
            frames.iter().map(|frame| TestDialect::RestV03.event(frame)).find(|(name, _)| name == "artifactUpdate");
        let (_, made) = made.unwrap();
        assert_eq!(of_parts(&made["artifact"]["parts"]), (format!("{EVERY:?}"), encode(&EVERY)));
        // Resumed, the same frames come from the log.
        let (id, cursor) = (task["id"].as_str().unwrap(), frames[0].id.clone().unwrap());
        let resumed = TestDialect::RestV03.ask(&world, "", Operation::Subscribe(id)).header("last-event-id", &cursor);
        let resumed = resumed.header("user-agent", user_agent).events().await.rest().await;
        assert_eq!(resumed[..], frames[1..]);
        let replied = stream("talker").await.rest().await;
        let (_, reply) = TestDialect::RestV03.event(&replied[0]);
        assert_eq!(of_parts(&reply["content"]).1, encode(&EVERY));
    }
}

#[tokio::test]
async fn files_of_others_are_left_alone_even_if_they_are_base64() {
    let world = world(RestFiles::Auto).await;
    let text = once(b"a text in base64");
    let content = format!("{:?}", text.as_bytes());
    // JavaScript's SDK, and clients that say nothing.
    for user_agent in [NODE, "curl/8.0 (like python-httpx/1)", ""] {
        let seen = exchanged(send(&world, "", user_agent, &[once(text.as_bytes())])).await;
        assert_eq!(seen, (content.clone(), once(&EVERY)), "{user_agent:?}");
    }
    // A script with httpx that encodes once: one of its files shows it.
    let files = [once(text.as_bytes()), once(&EVERY)];
    let seen = exchanged(send(&world, "", PYTHON, &files)).await;
    assert_eq!(seen, (format!("{content} {EVERY:?}"), once(&EVERY)));
    // Python's SDK over JSON-RPC, and over REST of version 1.0.
    let mut rpc = TestDialect::RpcV03.message("inspect");
    rpc["parts"].as_array_mut().unwrap().push(json!({"kind": "file", "file": {"bytes": once(text.as_bytes())}}));
    let ask = TestDialect::RpcV03.ask(&world, "", Operation::Send(json!({"message": rpc})));
    let task = TestDialect::RpcV03.sent_task(&ask.header("user-agent", PYTHON).reply().await);
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], content);
    assert_eq!(task["artifacts"][0]["parts"][1]["file"]["bytes"], once(&EVERY));
    let mut rest = TestDialect::RestV1.message("inspect");
    rest["parts"].as_array_mut().unwrap().push(json!({"raw": once(text.as_bytes())}));
    let ask = TestDialect::RestV1.ask(&world, "", Operation::Send(json!({"message": rest})));
    let task = TestDialect::RestV1.sent_task(&ask.header("user-agent", PYTHON).reply().await);
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], content);
    assert_eq!(task["artifacts"][0]["parts"][1]["raw"], once(&EVERY));
}

#[tokio::test]
async fn an_agent_can_be_set_to_either_encoding() {
    let strict = world(RestFiles::Once).await;
    let seen = exchanged(send(&strict, "", PYTHON, &[twice(&EVERY)])).await;
    assert_eq!(seen, (format!("{:?}", once(&EVERY).as_bytes()), once(&EVERY)));

    let world = world(RestFiles::Twice).await;
    let task = TestDialect::RestV03.sent_task(&send(&world, "worker", "my-app/1", &[twice(&EVERY)]).reply().await);
    assert_eq!(of_parts(&task["artifacts"][0]["parts"]), (format!("{EVERY:?}"), twice(&EVERY)));
    // At the root too, where the task says which agent it is.
    for operation in [Operation::Get(task["id"].as_str().unwrap(), None), Operation::List] {
        let reply = TestDialect::RestV03.ask(&world, "", operation.clone()).reply().await;
        let text = TestDialect::RestV03.result(&reply).to_string();
        assert!(text.contains(&twice(&EVERY)) && !text.contains(&once(&EVERY)), "{operation:?}: {text}");
    }
    let refused = send(&world, "", "my-app/1", &[once(&EVERY)]).reply().await;
    assert_eq!(TestDialect::RestV03.error(&refused).0, 400);
    let said = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("message.content[1].file.fileWithBytes") && said.contains("v03.restFiles"), "{said}");
}
