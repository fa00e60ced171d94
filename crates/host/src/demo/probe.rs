//! The probe agent: runs the command in its message, for testing clients, proxies and servers.

use std::num::IntErrorKind;
use std::time::Duration;

use switchboard_a2a::{Artifact, ArtifactId, Json, Part, PartContent};
use switchboard_engine::{
    Agent, AgentError, Cause, Manifest, Progress, Recovery, Replies, Skill, Start, TaskHandle, TaskView, Tool,
    ToolCall, Turn, sha256,
};

/// A command: its syntax, an example and its effect.
struct Command {
    usage: &'static str,
    example: &'static str,
    effect: &'static str,
}

const fn command(usage: &'static str, example: &'static str, effect: &'static str) -> Command {
    Command { usage, example, effect }
}

/// The commands, which are the reply to an unknown one. Each is a skill on the card.
const COMMANDS: [Command; 18] = [
    command("hello", "hello", "working, one artifact, completed"),
    command("stream:N", "stream:100", "N chunks as fast as possible"),
    command("streamy:N", "streamy:100", "N chunks, yielding between them"),
    command("progress:N", "progress:5", "N steps of progress, with percent and step"),
    command("tool", "tool", "a tool call that completes; tool:fail for one that fails"),
    command("sleep:MS", "sleep:500", "works for MS milliseconds"),
    command("hold", "hold", "works until it is canceled"),
    command("ask", "ask", "asks a question and repeats the answer"),
    command("auth", "auth", "asks for credentials and goes on after the next message"),
    command("reject", "reject", "rejects the task"),
    command("err", "err", "fails"),
    command("panic", "panic", "panics"),
    command("silent", "silent", "returns without a result"),
    command("message", "message", "answers with a message instead of a task"),
    command("file", "file", "produces a file; file:bytes for one that holds every byte"),
    command("digest", "digest", "tells the size and SHA-256 of each file it gets"),
    command("data", "data", "produces structured data"),
    command("big:BYTES", "big:1000", "produces a text of that size"),
];

impl Command {
    fn name(&self) -> &'static str {
        self.usage.split(':').next().unwrap_or(self.usage)
    }

    fn is_named(&self, name: &str) -> bool {
        self.usage.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    fn takes_number(&self) -> bool {
        self.usage.contains(':')
    }

    fn tool(&self) -> Tool {
        Tool {
            name: self.name().to_owned(),
            description: self.effect.to_owned(),
            capabilities: vec!["testing".to_owned()],
            examples: vec![self.example.to_owned()],
        }
    }
}

/// Parses the command and its argument. If the skill names a command, the text is its argument, unless the text repeats
/// the command.
fn parse_command<'a>(text: &'a str, skill: Option<&'a str>) -> (&'a str, &'a str) {
    let text = text.trim();
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    match skill.filter(|skill| COMMANDS.iter().any(|command| command.is_named(skill))) {
        Some(skill) if skill != name => (skill, text),
        _ => (name, argument.trim()),
    }
}

/// The most chunks, bytes and milliseconds one command may ask for.
const MOST: u64 = 10_000_000;

/// The number that an argument is, up to the most; nothing if it is none.
fn number(argument: &str) -> Option<u64> {
    match argument.parse::<u64>() {
        Ok(number) => Some(number.min(MOST)),
        Err(error) => (*error.kind() == IntErrorKind::PosOverflow).then_some(MOST),
    }
}

/// Does what its text says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe;

impl Agent for Probe {
    fn manifest(&self) -> Manifest {
        let mut skill =
            Skill::new("probe", "Probe", "Behaves as the text says, for testing").tags(&["demo", "testing"]);
        skill.examples = COMMANDS.iter().map(|command| command.example.to_owned()).collect();
        Manifest {
            input_modes: ["text/plain", "*/*"].map(str::to_owned).to_vec(),
            output_modes: ["text/plain", "application/json", "application/octet-stream"].map(str::to_owned).to_vec(),
            start: Start::WithCommit,
            replies: Replies::Either,
            ..Manifest::new("Probe", "Does what its text says, for testing clients, proxies and servers")
        }
        .skill(skill)
        .tools(COMMANDS.iter().map(Command::tool))
        .tool_calls()
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        if let Cause::Answer { .. } = turn.cause {
            return Ok(task.complete_with(format!("you said: {}", turn.text())).await?);
        }
        let text = turn.text();
        let (name, argument) = parse_command(&text, turn.skill());
        let number = match number(argument) {
            Some(number) => number,
            None if COMMANDS.iter().any(|command| command.is_named(name) && command.takes_number()) => {
                return list(&task).await;
            }
            None => 0,
        };
        match name {
            "hello" => {
                task.working().await?;
                task.artifact(Artifact::text("hello").named("greeting")).await?;
                task.complete().await?;
            }
            "stream" => chunks(&task, number, false).await?,
            "streamy" => chunks(&task, number, true).await?,
            "progress" => steps(&task, number).await?,
            "tool" => tool_call(&task, argument == "fail").await?,
            "sleep" => {
                task.working().await?;
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(number)) => {}
                    () = task.canceled() => return Ok(()),
                }
                task.complete_with(format!("slept for {number} ms")).await?;
            }
            "hold" => {
                task.working().await?;
                task.canceled().await;
            }
            "ask" => {
                let answer = task.ask("What shall I repeat?").await?;
                task.complete_with(format!("you said: {}", answer.joined_text())).await?;
            }
            "auth" => {
                let answer = task.authorize("Please sign in, then send any message").await?;
                task.complete_with(format!("you said: {}", answer.joined_text())).await?;
            }
            "reject" => task.reject("this probe was told to reject").await?,
            "err" => return Err(AgentError::new("this probe was told to fail")),
            #[expect(clippy::panic, reason = "the point of the command is to show that a panic is a failed task")]
            "panic" => panic!("this probe was told to panic"),
            "silent" => {}
            "message" => task.reply(vec![Part::text("a direct message")]).await?,
            "file" => {
                task.artifact(Artifact::new(vec![file(argument == "bytes")]).named("file")).await?;
                task.complete().await?;
            }
            "digest" => task.complete_with(digests(&turn.message.parts)).await?,
            "data" => {
                let value = serde_json::json!({"probe": true, "numbers": [1, 2, 3], "largest": u64::MAX});
                let value = Json::from_serialize(&value).map_err(|error| AgentError::new(error.to_string()))?;
                task.artifact(Artifact::new(vec![Part::data(value)]).named("data")).await?;
                task.complete().await?;
            }
            "big" => {
                let size = usize::try_from(number).unwrap_or(usize::MAX);
                task.artifact(Artifact::text("x".repeat(size)).named("big")).await?;
                task.complete().await?;
            }
            _ => list(&task).await?,
        }
        Ok(())
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        // Waiting can simply go on; chunks already sent must not be sent again.
        match parse_command(&task.message.joined_text(), task.hints.skill.as_deref()).0 {
            "hold" | "ask" | "auth" => Recovery::Resume,
            _ => Recovery::Fail("the server stopped while the probe was running".to_owned()),
        }
    }
}

/// A text file, or one with every byte value.
fn file(every_byte: bool) -> Part {
    let (name, media_type, content) = match every_byte {
        true => ("every-byte.bin", "application/octet-stream", (0..=255).collect()),
        false => ("probe.txt", "text/plain", b"a file from the probe\n".to_vec()),
    };
    Part {
        filename: Some(name.to_owned()),
        media_type: Some(media_type.to_owned()),
        ..Part::new(PartContent::Raw(content))
    }
}

/// Size and digest of each file that came inline, after decoding.
fn digests(parts: &[Part]) -> String {
    let lines = parts.iter().filter_map(|part| match &part.content {
        PartContent::Raw(bytes) => {
            let digest: String = sha256([bytes.as_slice()]).iter().map(|byte| format!("{byte:02x}")).collect();
            Some(format!("{} bytes, sha256 {digest}", bytes.len()))
        }
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "there is no file with its bytes".to_owned() } else { lines.join("\n") }
}

/// Completes with the list of commands.
async fn list(task: &TaskHandle) -> Result<(), AgentError> {
    let lines = COMMANDS.map(|command| format!("{}: {}", command.usage, command.effect));
    Ok(task.complete_with(format!("Send me one of these:\n{}", lines.join("\n"))).await?)
}

/// One artifact in `count` chunks, then the terminal event.
async fn chunks(task: &TaskHandle, count: u64, yielding: bool) -> Result<(), AgentError> {
    let artifact_id = ArtifactId::generate();
    task.working().await?;
    for number in 1..=count {
        let artifact = Artifact { artifact_id: artifact_id.clone(), ..Artifact::text(format!("chunk {number}\n")) };
        task.chunk(artifact, number > 1, number == count, None).await?;
        if yielding {
            tokio::task::yield_now().await;
        }
    }
    Ok(task.complete().await?)
}

/// Progress updates for a number of steps, then the terminal event.
async fn steps(task: &TaskHandle, count: u64) -> Result<(), AgentError> {
    for step in 1..=count {
        let percent = u32::try_from(step * 100 / count).unwrap_or(100);
        task.progress(Progress::text(format!("step {step} of {count}")).percent(percent).step(step, count)).await?;
        tokio::task::yield_now().await;
    }
    Ok(task.complete_with(format!("{count} steps done")).await?)
}

/// One call of a tool that does not exist.
async fn tool_call(task: &TaskHandle, fails: bool) -> Result<(), AgentError> {
    let (id, name) = ("call-1", "search_repo");
    task.tool_call(ToolCall::started(id, name).args(&serde_json::json!({"query": "where is the log opened?"}))).await?;
    tokio::task::yield_now().await;
    if fails {
        task.tool_call(ToolCall::failed(id, name, "there is no repository to search")).await?;
        return Ok(task.complete_with("the tool failed").await?);
    }
    task.tool_call(ToolCall::completed(id, name).result(&["src/log.rs", "src/main.rs"])).await?;
    Ok(task.complete_with("the tool found two files").await?)
}
