//! The probe does what its text says, and its numbers have an end.

use serde_json::json;
use switchboard_a2a::{Message, Metadata, Task, TaskState};
use switchboard_engine::{PROGRESS_KEY, TOOL_CALL_URI};
use switchboard_host::Agent;
use switchboard_host::demo::Probe;

use crate::kernel::Kernel;

fn said(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

#[tokio::test]
async fn progress_counts_its_steps() {
    let kernel = Kernel::serve(Probe).await;
    let task = kernel.send("progress:4", None).await;
    assert_eq!((task.status.state, said(&task).as_str()), (TaskState::Completed, "4 steps done"));
    assert_eq!(task.metadata, None, "progress is gone when it is done");
    let frames = kernel.frames(&task.id).await;
    let progress: Vec<_> = frames.iter().map(|frame| &frame["statusUpdate"]["metadata"][PROGRESS_KEY]).collect();
    assert_eq!(*progress[0], json!({"text": "step 1 of 4", "percent": 25, "step": {"current": 1, "total": 4}}));
    assert_eq!(progress[3]["percent"], 100);
    assert_eq!(frames.len(), 6, "four steps, the answer and the end");
    assert_eq!(said(&kernel.send("progress:0", None).await), "0 steps done");
}

#[tokio::test]
async fn a_tool_is_called_and_answers_or_fails() {
    let kernel = Kernel::serve(Probe).await;
    for (text, phases, answer) in [
        ("tool", ["started", "completed"], "the tool found two files"),
        ("tool:fail", ["started", "failed"], "the tool failed"),
    ] {
        let task = kernel.send(text, None).await;
        assert_eq!((task.status.state, said(&task).as_str()), (TaskState::Completed, answer));
        let frames = kernel.frames(&task.id).await;
        let call = |index: usize| frames[index]["statusUpdate"]["status"]["message"]["metadata"][TOOL_CALL_URI].clone();
        assert_eq!([call(0)["phase"].as_str().unwrap(), call(1)["phase"].as_str().unwrap()], phases);
        assert_eq!(call(0)["toolCallId"], call(1)["toolCallId"]);
    }
}

#[tokio::test]
async fn a_text_beyond_the_limit_of_an_event_fails_with_its_reason() {
    let kernel = Kernel::serve(Probe).await;
    let task = kernel.send("big:9000000", None).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(task.metadata.as_ref().unwrap().get("switchboard/reason").unwrap().as_text().unwrap(), "too_large");
    assert!(said(&task).contains("limits.event"), "{}", said(&task));
    let task = kernel.send("big:1000", None).await;
    assert_eq!((task.status.state, said(&task).len()), (TaskState::Completed, 1_000));
    let task = kernel.send("big:1000000", None).await;
    assert!(said(&task).ends_with("The whole answer is in the artifact \"big\"."), "{}", said(&task));
}

#[tokio::test]
async fn files_and_data_are_pointed_to_and_a_skill_names_the_command() {
    let kernel = Kernel::serve(Probe).await;
    for (name, metadata) in [("file", None), ("data", Some(r#"{"skill":"data"}"#))] {
        let metadata: Option<Metadata> = metadata.map(|json| serde_json::from_str(json).unwrap());
        let text = if metadata.is_some() { "please" } else { name };
        let task = kernel.send(text, metadata).await;
        assert_eq!(task.artifacts[0].name.as_deref(), Some(name));
        assert_eq!(said(&task), format!("The answer is in the artifact \"{name}\"."));
    }
}

#[tokio::test]
async fn an_argument_that_is_no_number_is_answered_with_the_list() {
    let kernel = Kernel::serve(Probe).await;
    for text in ["stream:-1", "streamy:x", "progress:", "progress", "sleep:1.5", "big:", "big: 10 bytes", "whatever"] {
        let task = kernel.send(text, None).await;
        assert_eq!(task.status.state, TaskState::Completed, "{text}");
        assert!(said(&task).starts_with("Send me one of these:\nhello: "), "{text}: {}", said(&task));
    }
    let metadata: Metadata = serde_json::from_str(r#"{"skill":"stream"}"#).unwrap();
    assert!(said(&kernel.send("many", Some(metadata)).await).starts_with("Send me one of these:"));
    let largest = kernel.send("big:99999999999999999999", None).await;
    assert_eq!(largest.status.state, TaskState::Failed, "it is a number, and ten million bytes are too many");
}

#[tokio::test]
async fn every_command_is_documented_and_its_example_on_the_card_is_run_as_it_stands() {
    let kernel = Kernel::serve(Probe).await;
    let list = said(&kernel.send("whatever", None).await);
    let commands: Vec<&str> = list.lines().skip(1).map(|line| line.split(": ").next().unwrap()).collect();
    let page = include_str!("../../../../docs/demo-agents.md");
    let manifest = Probe.manifest();
    assert_eq!(manifest.skills[0].examples.len(), commands.len());
    for (command, example) in commands.iter().zip(&manifest.skills[0].examples) {
        assert!(page.contains(&format!("| `{command}` |")), "{command} is not documented");
        let name = command.split(':').next().unwrap();
        let skill = manifest.skills.iter().find(|skill| skill.id == name).unwrap();
        assert_eq!((&skill.examples[..], skill.tags.join(",").as_str()), (&[example.clone()][..], "testing"));
        let (said, argument) =
            example.split_once(':').map_or((example.as_str(), None), |(name, number)| (name, Some(number)));
        assert_eq!((said, argument.is_some()), (name, command.contains(':')), "{example}");
        assert!(argument.is_none_or(|number| number.parse::<u64>().is_ok()), "{example}");
    }
    assert!(page.contains("ten million"));
    let skill = |id: &str| serde_json::from_str::<Metadata>(&format!(r#"{{"skill":"{id}"}}"#)).unwrap();
    for (text, metadata) in [
        (" progress: 2 ", None),
        ("2", Some(skill("progress"))),
        ("progress:2", Some(skill("progress"))),
        ("progress:2", Some(skill("probe"))),
    ] {
        assert_eq!(said_of(&kernel, text, metadata).await, "2 steps done", "{text}");
    }
    assert_eq!(kernel.send("progress:2", Some(skill("hello"))).await.artifacts[0].name.as_deref(), Some("greeting"));
}

async fn said_of(kernel: &Kernel, text: &str, metadata: Option<Metadata>) -> String {
    said(&kernel.send(text, metadata).await)
}
