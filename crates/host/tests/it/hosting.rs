//! Agents of a program of one's own behind the whole server.

use std::path::PathBuf;

use switchboard_engine::Hosted;
use switchboard_host::flags::ConfigFlags;
use switchboard_host::serve::{Fleet, Plan, Serving};
use switchboard_host::{
    Agent, AgentError, Artifact, Host, Json, Manifest, Metadata, Part, PartContent, TaskHandle, Turn,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Says its name before the message.
struct Named(&'static str);

impl Agent for Named {
    fn manifest(&self) -> Manifest {
        Manifest::new(self.0, "Says its name")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        Ok(task.complete_with(format!("{}: {}", self.0, turn.text())).await?)
    }
}

/// Answers with a part that says what each part of the message holds. All names it uses are of this one crate.
struct Inspector;

impl Agent for Inspector {
    fn manifest(&self) -> Manifest {
        Manifest::new("Inspector", "Says what the parts of a message hold")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let mut found = Metadata::default();
        for part in &turn.message.parts {
            let (kind, holds) = match &part.content {
                PartContent::Text(text) => ("text", Json::from_serialize(text)),
                PartContent::Raw(_) => ("bytes", Json::from_serialize(&part.as_bytes().map(<[u8]>::len))),
                PartContent::Url(url) => ("url", Json::from_serialize(url)),
                PartContent::Data(_) => ("data", Json::from_serialize(&part.as_data())),
            };
            found.insert(kind, holds.unwrap());
        }
        let answer = Part { metadata: Some(found), ..Part::data(Json::parse("[1]").unwrap()) };
        task.artifact(Artifact::new(vec![answer])).await?;
        Ok(task.complete().await?)
    }
}

async fn post(address: &str, path: &str, parts: &str) -> String {
    let body = format!(r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{parts}]}}}}"#);
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn several_agents_of_one_program_each_answer_at_an_address_of_their_own() {
    let hosted = [Hosted::new("ann", Named("Ann")), Hosted::new("bob", Named("Bob"))];
    serve(hosted.into(), async |address| {
        for (path, answer) in [("ann", "Ann: hi"), ("bob", "Bob: hi")] {
            let got = post(address, &format!("/a2a/{path}/message:send"), r#"{"text":"hi"}"#).await;
            assert!(got.contains(answer) && got.contains("TASK_STATE_COMPLETED"), "{got}");
        }
        let got = post(address, "/a2a/message:send", r#"{"text":"hi"}"#).await;
        assert!(got.starts_with("HTTP/1.1 404") && got.contains("name one: ann, bob"), "{got}");
    })
    .await;
}

#[tokio::test]
async fn an_agent_reads_and_writes_every_kind_of_part_with_the_names_of_one_crate() {
    let parts = r#"{"text":"hi"},{"raw":"AAEC"},{"url":"file:///x"},{"data":{"a":1}}"#;
    serve(vec![Hosted::new("inspector", Inspector)], async |address| {
        let got = post(address, "/a2a/inspector/message:send", parts).await;
        let answer = r#""data":[1],"metadata":{"text":"hi","bytes":3,"url":"file:///x","data":{"a":1}}"#;
        assert!(got.contains(answer) && got.contains("TASK_STATE_COMPLETED"), "{got}");
    })
    .await;
}

/// Serves agents while `ask` calls them at an address.
async fn serve(agents: Vec<Hosted>, ask: impl AsyncFnOnce(&str)) {
    let folder = tempfile::tempdir().unwrap();
    let flags = ConfigFlags {
        workspace: folder.path().to_owned(),
        bind: Some("127.0.0.1:0".to_owned()),
        data_dir: Some(PathBuf::from(folder.path()).join("data")),
    };
    let workspace = flags.load_settings().unwrap();
    let plan = Plan { workspace, fleet: Fleet::of(agents), read_again: Box::new(move || flags.load_settings()) };
    let serving = Serving::start(plan).await.unwrap();
    let address = serving.banner.address.clone();
    let stop = CancellationToken::new();
    let served = tokio::spawn(serving.run(stop.clone()));
    ask(&address).await;
    stop.cancel();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_name_that_no_agent_can_have_or_that_two_have_is_refused() {
    let twice = Host::new().agent("ann", Named("Ann")).agent("bob", Named("Bob")).agent("ann", Named("Ann"));
    for (host, problem) in [
        (Host::new(), "there is no agent to host: name one with Host::agent"),
        (
            Host::new().agent("Ann", Named("Ann")),
            "\"Ann\" cannot be an agent's name: write a name of lowercase letters",
        ),
        (twice, "two agents are called ann: give each a name of its own"),
    ] {
        let refused = host.run().await.unwrap_err().to_string();
        assert!(refused.starts_with(problem), "{refused}");
    }
}
