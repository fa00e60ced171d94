//! What agents report besides their answer: progress, tool calls, and where the answer is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Artifact, Dialect, Json, Part, Task, TaskState};
use switchboard_engine::*;

use crate::faults::Faults;
use crate::kernel::*;

async fn frames(kernel: &Kernel, task: &Task) -> Vec<Value> {
    let log = kernel.log(&task.id).await;
    log.iter().map(|event| serde_json::from_slice(&event.line).unwrap()).collect()
}

fn progress_of(task: &Task) -> Option<Value> {
    task.metadata.as_ref()?.get(PROGRESS_KEY).map(|progress| progress.read().unwrap())
}

#[test]
fn progress_is_in_the_event_and_in_the_task_while_it_works_and_gone_after() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.progress(Progress::text("reading").percent(40).step(2, 5)).await?;
        task.tool_call(ToolCall::started("c1", "search_repo")).await?;
        let answer = task.next_message().await?;
        task.progress(Progress::text("").percent(250).named_step("diff")).await?;
        task.ask(format!("{}?", answer.joined_text())).await?;
        task.usage(Usage { input_tokens: 1, ..Usage::default() }).await?;
        Ok(task.complete_with("done").await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        let task = loop {
            let task = kernel.get(sent.id()).await.unwrap();
            if status_text(&task).contains("search_repo") {
                break task;
            }
            tokio::task::yield_now().await;
        };
        let first = json!({"text": "reading", "percent": 40, "step": {"current": 2, "total": 5}});
        assert_eq!(progress_of(&task), Some(first.clone()), "another status does not take it back");
        assert_eq!(task.history.last().unwrap().joined_text(), "reading");
        kernel.say(sent.id(), "which").await.unwrap();
        let task = answer_task(&sent).await;
        assert_eq!((task.status.state, &task.metadata), (TaskState::InputRequired, &None), "it waits");
        let told = kernel.say(sent.id(), "that one").await.unwrap();
        let task = answer_task(&told).await;
        assert_eq!((task.status.state, progress_of(&task)), (TaskState::Completed, None));
        assert!(task.metadata.unwrap().get("switchboard/usage").is_some(), "the rest of the metadata stays");
        let frames = frames(&kernel, &kernel.get(sent.id()).await.unwrap()).await;
        assert_eq!(frames[0]["statusUpdate"]["metadata"][PROGRESS_KEY], first);
        assert_eq!(frames[0]["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
        assert_eq!(frames[2]["statusUpdate"]["metadata"][PROGRESS_KEY], json!({"percent": 100, "step": "diff"}));
        assert_eq!(frames[2]["statusUpdate"]["status"].get("message"), None, "no text, no message");
    });
    let written = |progress: Progress| serde_json::to_string(&progress).unwrap();
    let last = r#"{"percent":100,"step":{"current":5,"total":5}}"#;
    assert_eq!(written(Progress::text("").percent(101).step(9, 5)), last);
    assert_eq!(written(Progress::text("").step(3, 0)), r#"{"step":{"current":3}}"#);
}

#[test]
fn progress_of_one_message_is_not_that_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "second" {
            task.working().await?;
            task.canceled().await;
            return Ok(());
        }
        task.progress(Progress::text("almost").percent(99)).await?;
        while task.snapshot().history.len() < 2 {
            tokio::task::yield_now().await;
        }
        Ok(task.complete().await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("first").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        kernel.say(sent.id(), "second").await.unwrap();
        while progress_of(&kernel.get(sent.id()).await.unwrap()).is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(kernel.get(sent.id()).await.unwrap().status.state, TaskState::Working);
        kernel.cancel(sent.id()).await.unwrap();
    });
}

#[test]
fn tool_calls_are_status_messages_that_every_reader_of_the_extension_finds() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.tool_call(ToolCall::started("c1", "read").args(&json!({"path": "x".repeat(500)}))).await?;
        task.tool_call(ToolCall::failed("c1", "read", "no such file")).await?;
        Ok(task.complete_with("done").await?)
    });
    let kernel = Kernel::with_settings(folder.path(), script, Settings { emit: Emit::All, ..Settings::default() });
    kernel.run(async {
        let task = answer_task(&kernel.send("go").await).await;
        let frames = frames(&kernel, &task).await;
        let message = |index: usize| &frames[index]["statusUpdate"]["status"]["message"];
        for (index, phase) in [(0, "started"), (1, "failed")] {
            let call = &message(index)["metadata"][TOOL_CALL_URI];
            assert_eq!(
                (&call["toolCallId"], &call["name"], &call["phase"]),
                (&"c1".into(), &"read".into(), &phase.into())
            );
            assert_eq!(message(index)["parts"][1]["data"], *call);
            assert_eq!(message(index)["extensions"][0], TOOL_CALL_URI);
            let media_type = &message(index)["parts"][1]["metadata"]["mimeType"];
            assert_eq!(media_type, "application/vnd.protolabs.tool-call-v1+json");
        }
        assert_eq!(message(1)["parts"][0]["text"], "read failed: no such file");
        let preview = message(0)["metadata"][TOOL_CALL_URI]["args"].as_str().unwrap();
        assert!(preview.chars().count() == 200 && preview.starts_with(r#"{"path":"xxx"#), "{preview}");
        assert_eq!(message(1)["metadata"][TOOL_CALL_URI]["error"], "no such file");
        assert_eq!(frames.len(), 4, "two calls, the answer, the end");
    });
}

#[test]
fn only_readers_of_the_earlier_version_are_given_a_tool_call_twice() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.tool_call(ToolCall::started("c1", "read")).await?;
        Ok(task.complete_with("done").await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let task = answer_task(&kernel.send("go").await).await;
        let first = &kernel.log(&task.id).await[0];
        let parts = |dialect: Dialect, pointer: &str| {
            let frame: Value = serde_json::from_slice(&first.frame(dialect, false).unwrap()).unwrap();
            frame.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {frame}")).as_array().unwrap().clone()
        };
        assert_eq!(parts(Dialect::V1, "/statusUpdate/status/message/parts").len(), 1, "it is in the metadata");
        let of_rpc = parts(Dialect::V03Rpc, "/status/message/parts");
        let of_rest = parts(Dialect::V03Rest, "/statusUpdate/status/message/content");
        assert_eq!((&of_rpc[1]["kind"], &of_rpc[1]["data"]["toolCallId"]), (&json!("data"), &json!("c1")));
        assert_eq!(of_rest[1]["data"]["data"]["toolCallId"], "c1");
        for parts in [of_rpc, of_rest] {
            assert_eq!(parts.len(), 2);
            assert_eq!(parts[1]["metadata"]["mimeType"], "application/vnd.protolabs.tool-call-v1+json");
        }
    });
}

#[test]
fn previews_of_tool_calls_are_cut_between_characters() {
    let long = "ö".repeat(1_000);
    let written = |call: ToolCall| serde_json::to_value(call).unwrap();
    let call = written(ToolCall::completed("c1", "read").args(&json!({ "path": long })).result(&long));
    for (field, most) in [("args", 200), ("result", 300)] {
        let text = call[field].as_str().unwrap();
        assert!(text.chars().count() == most && text.ends_with("ö…"), "{text}");
    }
    let fits = "ö".repeat(300);
    assert_eq!(written(ToolCall::completed("c1", "read").result(&fits))["result"], fits);
    let short = written(ToolCall::started("c1", "search").args(&json!({"query": "log"})));
    assert_eq!(short, json!({"toolCallId": "c1", "name": "search", "phase": "started", "args": {"query": "log"}}));
}

#[test]
fn an_answer_is_both_an_artifact_and_the_final_message() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let data = || Artifact::new(vec![Part::data(Json::parse("[1]").unwrap())]);
        match turn.text().as_str() {
            "deltas" => {
                task.text("Hello, ").await?;
                task.text("world").await?;
            }
            "long" => task.artifact(Artifact::text("x".repeat(100_000)).named("book")).await?,
            "data" => task.artifact(data().named("table")).await?,
            "both" => {
                task.artifact(data().named("table")).await?;
                return Ok(task.complete_with("y".repeat(40_000)).await?);
            }
            "nothing" => {}
            _ => task.artifact(Artifact::text("whole")).await?,
        }
        Ok(task.complete().await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        for (word, message) in [("deltas", "Hello, world"), ("whole", "whole"), ("nothing", "")] {
            let task = answer_task(&kernel.send(word).await).await;
            assert_eq!(status_text(&task), message, "{word}");
            let text = task.artifacts.first().map_or("", |artifact| artifact.parts[0].as_text().unwrap());
            assert_eq!(text, message, "{word}");
            if word == "deltas" {
                let names: Vec<Value> = frames(&kernel, &task)
                    .await
                    .iter()
                    .filter_map(|frame| frame.get("artifactUpdate").map(|update| update["artifact"]["name"].clone()))
                    .collect();
                assert!(
                    names.len() > 1 && names.iter().all(|name| name == "answer"),
                    "every piece has the name: {names:?}"
                );
            }
        }
        let task = answer_task(&kernel.send("long").await).await;
        assert!(status_text(&task).starts_with("xxx") && status_text(&task).len() < 1_000);
        assert!(status_text(&task).ends_with("…\n\nThe whole answer is in the artifact \"book\"."));
        let task = answer_task(&kernel.send("data").await).await;
        assert_eq!(status_text(&task), "The answer is in the artifact \"table\".");
        let task = answer_task(&kernel.send("both").await).await;
        assert_eq!(task.artifacts[1].parts[0].as_text().unwrap().len(), 40_000, "a long answer is never lost");
        assert!(status_text(&task).ends_with("The whole answer is in the artifact \"answer\"."));
    });
}

/// The final message of a run that produces these artifacts and chunks, each with whether it is appended.
fn final_message(produced: Vec<(Artifact, bool)>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let produced = produced.clone();
        async move {
            for (artifact, append) in produced {
                task.chunk(artifact, append, false, None).await?;
            }
            Ok(task.complete().await?)
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async { status_text(&answer_task(&kernel.send("go").await).await) })
}

#[test]
fn a_final_message_repeats_text_and_names_what_is_none() {
    const WHOLE: usize = 32 << 10;
    let more =
        |first: &Artifact, text: &str| Artifact { artifact_id: first.artifact_id.clone(), ..Artifact::text(text) };
    let table = || Part::data(Json::parse("{}").unwrap());
    let data = |name: &str| Artifact::new(vec![table()]).named(name);

    let longest = "x".repeat(WHOLE);
    assert_eq!(final_message(vec![(Artifact::text(&longest), false)]), longest);
    let first = Artifact::text("ö".repeat(10)).named("book");
    let rest = more(&first, &longest);
    let words = final_message(vec![(first, false), (rest.clone(), true), (rest, true)]);
    assert!(words.starts_with("öööööööööö") && words.contains("xxx…\n\n"), "{words}");
    assert!(words.ends_with("The whole answer is in the artifact \"book\"."), "{words}");
    assert_eq!(words.chars().filter(|letter| "öx".contains(*letter)).count(), 500);

    let two = final_message(vec![(data("a"), false), (data("b"), false)]);
    assert_eq!(two, "The answer is in the artifacts \"a\" and \"b\".");
    let many = final_message((0..9).map(|number| (data(&number.to_string()), false)).collect());
    assert_eq!(many, r#"The answer is in the artifacts "0", "1", "2", "3", "4" and others."#);
    let unnamed = Artifact { name: None, ..data("") };
    let id = unnamed.artifact_id.to_string();
    assert!(final_message(vec![(unnamed, true)]).contains(&id), "also if only its end was produced here");

    let whole = Artifact::new(vec![Part::text("short"), table()]).named("both");
    let expected = "short\n\nThe whole answer is in the artifact \"both\".";
    assert_eq!(final_message(vec![(whole.clone(), false)]), expected);
    let first = Artifact { parts: vec![Part::text("short")], ..whole.clone() };
    let data_later = Artifact { parts: vec![table()], ..whole.clone() };
    assert_eq!(final_message(vec![(first, false), (data_later, true)]), expected, "also if it comes later");
    assert_eq!(final_message(vec![(whole, false), (Artifact::text("last"), false)]), "last");
    let (one, two) = (Artifact::text("one"), Artifact::text("two"));
    let rest = more(&one, " and more");
    assert_eq!(final_message(vec![(one, false), (two, false), (rest, true)]), "two", "chunks are not mixed");
}

#[test]
fn the_first_frame_of_a_follow_up_has_the_time_of_the_status_that_follows() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        let answer = task.ask("which city?").await?;
        Ok(task.complete_with(answer.joined_text()).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let task = answer_task(&kernel.send("weather").await).await;
        let answer = || {
            let mut send = request(message("Bern"));
            send.message.message_id = "answer".into();
            send.message.task_id = Some(task.id.clone());
            send.idempotency_key = Some("once".to_owned());
            send
        };
        let caller = Caller::local();
        // The second is a repetition: its first frame is read from the log.
        for _ in 0..2 {
            let told = kernel.send_as(&caller, answer()).await.unwrap();
            let SendStream::Task(Subscription { first: Some((_, first)), mut stream }) =
                told.stream(StreamEnd::Terminal, None).await
            else {
                panic!("no first frame")
            };
            assert_eq!(first.status.state, TaskState::Working);
            assert!(first.status.timestamp > task.status.timestamp, "{:?}", first.status.timestamp);
            let next: Value = serde_json::from_slice(&stream.next().await.unwrap().unwrap()[0].line).unwrap();
            let shown = serde_json::to_value(first.status.timestamp).unwrap();
            assert_eq!(next["statusUpdate"]["status"]["timestamp"], shown);
        }
    });
}

/// Has an effect outside once what it saved is stored.
fn careful(effects: &Arc<AtomicUsize>) -> Script {
    let effects = effects.clone();
    Script::new(move |_turn: Turn, task: TaskHandle| {
        let effects = effects.clone();
        async move {
            task.save_committed(&"about to").await?;
            effects.fetch_add(1, Ordering::SeqCst);
            Ok(task.complete_with("done").await?)
        }
    })
}

#[test]
fn what_is_saved_before_an_effect_is_stored_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (faults, effects) = (Faults::default(), Arc::new(AtomicUsize::new(0)));
    let kernel = Kernel::with_faults(folder.path(), careful(&effects), Settings::default(), &faults);
    kernel.run(async {
        faults.fail_after(1);
        let sent = kernel.send("go").await;
        while faults.failed() < 3 {
            kernel.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        assert_eq!(effects.load(Ordering::SeqCst), 0, "the disk is full, and it has been told so three times");
        faults.fail(false);
        let task = kernel.while_time_passes(kernel.ended(sent.id())).await;
        assert_eq!((task.status.state, effects.load(Ordering::SeqCst)), (TaskState::Completed, 1));
    });
}

#[test]
fn a_task_that_is_stopped_before_that_is_stored_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let (faults, effects) = (Faults::default(), Arc::new(AtomicUsize::new(0)));
    let settings = Settings { deadline: Some(Duration::from_secs(60)), ..Settings::default() };
    let kernel = Kernel::with_faults(folder.path(), careful(&effects), settings, &faults);
    kernel.run(async {
        faults.fail_after(1);
        let sent = kernel.send("go").await;
        while faults.failed() < 100 {
            kernel.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        faults.fail(false);
        let task = kernel.while_time_passes(kernel.ended(sent.id())).await;
        assert_eq!((reason(&task).as_str(), effects.load(Ordering::SeqCst)), ("timed_out", 0));
    });
}
