//! Recorded runs of the real agents.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Decision, Ending, Event, FailureKind, Step, Steps};

use super::{dialogue, events, failure, order, resume, said, written};
use crate::replay::Recording;

const AGENTS: [&str; 3] = ["gemini", "opencode", "claude-agent"];

/// The prompt that a recording was made with, and the conversation if it was taken up.
fn order_of(recording: &Recording) -> switchboard_cli_agents::adapters::Order {
    let written: Vec<Value> = recording.written().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |method: &str| written.iter().find(|message| message["method"] == method);
    let prompt =
        find("session/prompt").map_or("Work.", |message| message["params"]["prompt"][0]["text"].as_str().unwrap());
    match find("session/load").or_else(|| find("session/resume")) {
        Some(message) => resume(message["params"]["sessionId"].as_str().unwrap(), prompt),
        None => order(prompt),
    }
}

fn play(agent: &str, what: &str, decisions: &[Decision]) -> (Recording, Vec<Step>) {
    let recording = Recording::open(&format!("{agent}-acp-{what}.txt"));
    let mut dialogue = dialogue(&order_of(&recording));
    let played = recording.play(dialogue.as_mut(), decisions);
    (recording, played.steps)
}

/// One line for each step, without the greeting, which holds our version.
fn shown(steps: &[Step]) -> String {
    let lines = steps.iter().filter(|step| !matches!(step, Step::Write(line) if line.contains("\"initialize\"")));
    lines.map(|step| serde_json::to_string(step).unwrap() + "\n").collect()
}

/// What was written up to the first turn's end must be what the recording wrote; `mcpServers` may be left out if empty.
fn assert_written_as_recorded(recording: &Recording, steps: &[Step]) {
    let plain = |mut message: Value| {
        if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
            params.remove("clientInfo");
            if message["method"] == "session/resume" {
                message["params"].as_object_mut().unwrap().remove("mcpServers");
            }
            if message["method"] == "initialize" {
                message["params"]["clientCapabilities"].as_object_mut().unwrap().remove("auth");
            }
        }
        message
    };
    let recorded = recording.written().into_iter().map(|line| plain(serde_json::from_str(line).unwrap()));
    let ours: Vec<Value> = written(steps).into_iter().map(plain).collect();
    assert_eq!(ours, recorded.take(ours.len()).collect::<Vec<_>>());
    assert!(ours.len() >= 3, "{ours:?}");
}

#[test]
fn plain_turns() {
    for agent in AGENTS {
        let (recording, steps) = play(agent, "plain", &[]);
        assert_written_as_recorded(&recording, &steps);
        assert_eq!(said(&steps), "Hello from fake LLM|");
        insta::assert_snapshot!(format!("{agent}-plain"), shown(&steps));
    }
}

#[test]
fn permissions_allowed() {
    for agent in AGENTS {
        let (recording, steps) = play(agent, "permission-allow", &[Decision::Allow]);
        assert_written_as_recorded(&recording, &steps);
        insta::assert_snapshot!(format!("{agent}-permission-allow"), shown(&steps));
    }
}

#[test]
fn permissions_denied() {
    for agent in AGENTS {
        let (recording, steps) = play(agent, "permission-deny", &[Decision::Deny { reason: Some("no".to_owned()) }]);
        assert_written_as_recorded(&recording, &steps);
        // Gemini says nothing about the call that was refused; it is told all the same, once.
        let refused = |event: &&Event| matches!(event, Event::ToolResult { is_error: true, .. });
        assert_eq!(events(&steps).into_iter().filter(refused).count(), 1, "{agent}");
        assert!(matches!(steps.last(), Some(Step::Finish(Ending::Done { .. }))), "{agent}");
        insta::assert_snapshot!(format!("{agent}-permission-deny"), shown(&steps));
    }
}

#[test]
fn permissions_for_ever_are_chosen_only_where_they_are_offered() {
    for (agent, choice) in [("gemini", "proceed_always"), ("opencode", "always")] {
        let (recording, steps) = play(agent, "permission-always", &[Decision::Choose(choice.to_owned())]);
        assert_written_as_recorded(&recording, &steps);
        assert!(matches!(steps.last(), Some(Step::Finish(Ending::Done { .. }))), "{agent}");
    }
    // Claude does not offer it for this command.
    let (_, steps) = play("claude-agent", "permission-always", &[Decision::Choose("allow-always".to_owned())]);
    let answers = written(&steps);
    assert_eq!(answers.last().unwrap()["result"], json!({"outcome": {"outcome": "cancelled"}}));
}

/// Plays a recording and stops the turn where the recording did.
fn play_stopped(name: &str) -> (Recording, Vec<Step>) {
    let recording = Recording::open(name);
    let (mut dialogue, mut steps) = (dialogue(&order_of(&recording)), Steps::default());
    dialogue.begin(&mut steps);
    for line in text_of(name).lines() {
        if line.starts_with(">> ") && line.contains("session/cancel") {
            dialogue.interrupt(&mut steps);
        } else if let Some(line) = line.strip_prefix("<< ") {
            dialogue.line(line, &mut steps);
        }
    }
    (recording, steps.take())
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/captures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn turns_stopped() {
    for agent in AGENTS {
        let (recording, steps) = play_stopped(&format!("{agent}-acp-cancel-stream.txt"));
        assert_written_as_recorded(&recording, &steps);
        assert_eq!(failure(&steps).0, FailureKind::Interrupted, "{agent}");
        // The recording goes on with a second turn, which is none of ours.
        assert_eq!(said(&steps), "tick 0. tick 1. tick 2. |", "{agent}");
        insta::assert_snapshot!(format!("{agent}-cancel-stream"), shown(&steps));
    }
}

#[test]
fn turns_stopped_while_a_question_is_open() {
    for agent in AGENTS {
        let (recording, steps) = play_stopped(&format!("{agent}-acp-cancel-pending-permission.txt"));
        assert_written_as_recorded(&recording, &steps);
        assert_eq!(failure(&steps).0, FailureKind::Interrupted, "{agent}");
    }
}

#[test]
fn errors_of_the_model() {
    for (agent, message, spoken) in [
        ("gemini", "fake 400", ""),
        ("opencode", r#"Internal error: fake 400 ({"service":"session","errorName":"APIError"})"#, ""),
        // Claude's adapter says it as a message first.
        (
            "claude-agent",
            r#"Internal error: API Error: 400 fake 400 ({"errorKind":"unknown"})"#,
            "API Error: 400 fake 400|",
        ),
    ] {
        let (recording, steps) = play(agent, "error", &[]);
        assert_written_as_recorded(&recording, &steps);
        assert_eq!(failure(&steps), (FailureKind::Reported, message));
        assert_eq!(said(&steps), spoken);
    }
}

#[test]
fn a_run_that_ends_before_the_turn_does() {
    // No prompt was given in this one.
    let (_, steps) = play("claude-agent", "as-root", &[]);
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::NoResult);
    assert!(message.starts_with("the agent exited with code 0: [session/create]"), "{message}");
}

#[test]
fn conversations_taken_up_without_a_repeat() {
    for agent in ["opencode", "claude-agent"] {
        let (recording, steps) = play(agent, "resume", &[]);
        assert_written_as_recorded(&recording, &steps);
        assert_eq!(said(&steps), "I was resumed.|", "{agent}");
        insta::assert_snapshot!(format!("{agent}-resume"), shown(&steps));
    }
    // Gemini does not know the method, and does not say that it does: it is asked to load, and here refuses.
    let (_, steps) = play("gemini", "resume", &[]);
    assert_eq!(written(&steps)[1]["method"], "session/load");
    assert_eq!(failure(&steps).0, FailureKind::UnknownSession);
}

/// Plays a recording in which a conversation is loaded. Our ids are not those of the recording, because of a request
/// that the recording does not have: it is answered before the first new text, after all that is repeated, which is
/// where the real agent answers it.
fn play_loaded(agent: &str) -> (Recording, Vec<Step>) {
    let name = format!("{agent}-acp-load.txt");
    let recording = Recording::open(&name);
    let (mut dialogue, mut steps) = (dialogue(&order_of(&recording)), Steps::default());
    let mut all = Vec::new();
    let mut recorded: Vec<Value> = Vec::new();
    dialogue.begin(&mut steps);
    for line in text_of(&name).lines() {
        all.extend(steps.take());
        if let Some(line) = line.strip_prefix(">> ") {
            recorded.push(serde_json::from_str(line).unwrap());
        } else if let Some(line) = line.strip_prefix("<< ") {
            if line.contains("I was ")
                && let Some(id) = id_of(&json!("session/set_mode"), &all)
            {
                dialogue.line(&json!({"id": id, "result": {}}).to_string(), &mut steps);
            }
            let mut message: Value = serde_json::from_str(&line.replace(r#""resume":{}"#, r#""resume":null"#)).unwrap();
            if message["method"].is_null() {
                let asked = recorded.iter().find(|asked| asked["id"] == message["id"]).unwrap();
                all.extend(steps.take());
                message["id"] = id_of(&asked["method"], &all).unwrap();
            }
            dialogue.line(&message.to_string(), &mut steps);
        }
    }
    all.extend(steps.take());
    (recording, all)
}

/// The id under which we have asked for something.
fn id_of(method: &Value, steps: &[Step]) -> Option<Value> {
    written(steps).iter().find(|message| message["method"] == *method).map(|message| message["id"].clone())
}

#[test]
fn what_is_repeated_of_a_loaded_conversation_is_not_told() {
    for agent in AGENTS {
        let (_, steps) = play_loaded(agent);
        assert_eq!(said(&steps), "I was loaded.|", "{agent}");
        assert!(matches!(steps.last(), Some(Step::Finish(Ending::Done { answer: Some(_) }))), "{agent}");
        insta::assert_snapshot!(format!("{agent}-load"), shown(&steps));
    }
    // An agent without modes is trusted to have repeated everything before its answer, as the protocol wants.
    let (recording, steps) = play_loaded("opencode");
    assert_written_as_recorded(&recording, &steps);
}

/// Every line of every recording, in an order that makes no sense.
#[test]
fn lines_out_of_order_do_no_harm() {
    for file in std::fs::read_dir(format!("{}/tests/captures", env!("CARGO_MANIFEST_DIR"))).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let text = text_of(&name);
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("<< ")).collect();
        for order in [order("Work."), resume("s", "Work.")] {
            let (mut dialogue, mut steps) = (dialogue(&order), Steps::default());
            dialogue.begin(&mut steps);
            for line in lines.iter().rev().chain(&lines).chain(lines.iter().skip(1).step_by(2)) {
                dialogue.line(line, &mut steps);
            }
            dialogue.ended(&switchboard_cli_agents::adapters::Exit::default(), &mut steps);
            let finished = steps.take().iter().filter(|step| matches!(step, Step::Finish(_))).count();
            assert_eq!(finished, 1, "{name}");
        }
    }
}
