//! `send`: the answer on standard output exactly once, everything else beside it.

use serde_json::{Value, json};

use super::Fleet;

#[test]
fn the_answer_is_printed_and_what_it_takes_to_go_on_beside_it() {
    let fleet = Fleet::new();
    let run = fleet.run(&["send", "echo", "hello", "there"]);
    let shown = "artifact: echo\ntext:\n  hello there\n\ntask: ID1\ncontext: ID2\nstate: completed\n";
    assert_eq!((run.code, fleet.stable(&run.stdout).as_str()), (Some(0), shown));
    assert_eq!(run.stderr, "state: submitted\n", "how it is getting on is no part of the answer");

    let piped = fleet.workspace.run_with(&["send", "echo", "-", "-q"], "from a pipe\n");
    assert_eq!(piped.stdout, "from a pipe\n");
    let url = format!("http://{}/a2a/echo", fleet.server.address);
    for arguments in [
        &["send", url.as_str(), "hi"][..],
        &["send", "-a", url.as_str(), "hi"],
        &["send", "--agent-card", "echo", "hi", "--transport", "http+json"],
        &["send", "echo", "hi", "--a2a-version", "0.3"],
        &["send", "echo", "hi", "--transport", "http+json", "--a2a-version", "0.3", "--timeout", "60s"],
        &["send", &format!("{url}/.well-known/agent-card.json"), "hi"],
    ] {
        let run = fleet.run(&[arguments, &["--quiet"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{arguments:?}: {}", run.stderr);
        assert_eq!(run.stderr, "", "{arguments:?}");
    }
}

#[test]
fn streamed_text_comes_in_pieces_and_once() {
    let fleet = Fleet::new();
    let whole = "text:\n  chunk 1\n  chunk 2\n  chunk 3\n\n";
    for arguments in [&["send", "probe", "stream:3"][..], &["send", "probe", "stream:3", "--stream"]] {
        let run = fleet.run(arguments);
        assert_eq!((run.code, run.stdout.matches(whole).count()), (Some(0), 1), "{arguments:?}: {}", run.stdout);
        let end = fleet.stable(&run.stdout);
        let end: Vec<&str> = end.lines().rev().take(3).map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(end, ["state", "context", "task"], "a reader of the end alone can go on: {}", run.stdout);
    }
    assert_eq!(fleet.run(&["send", "probe", "stream:3", "-q"]).stdout, "chunk 1\nchunk 2\nchunk 3\n");
    let lines = fleet.run(&["send", "probe", "stream:3", "--stream", "--json"]);
    let events: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&String> = events.iter().map(|event| event.as_object().unwrap().keys().next().unwrap()).collect();
    assert_eq!(kinds, ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]);
    assert_eq!(events[5]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(lines.stderr, "", "programs read only what was asked for");
}

#[test]
fn json_is_one_document_in_the_words_of_the_protocol() {
    let fleet = Fleet::new();
    let answer = fleet.run(&["send", "echo", "hello", "-o", "json"]).json();
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"]);
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(answer["task"]["artifacts"][0]["parts"], json!([{ "text": "hello" }]));
    let reply = fleet.run(&["send", "probe", "message", "-o", "json"]).json();
    assert_eq!(reply["message"]["role"], "ROLE_AGENT", "{reply}");
    let text = fleet.run(&["send", "probe", "message"]);
    assert!(text.stdout.starts_with("message:\n"), "{}", text.stdout);
}

#[test]
fn how_a_task_ends_is_no_failure_of_the_command_unless_that_is_wanted() {
    let fleet = Fleet::new();
    for (text, state) in
        [("err", "failed"), ("reject", "rejected"), ("ask", "input-required"), ("auth", "auth-required")]
    {
        let run = fleet.run(&["send", "probe", text]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains(&format!("\nstate: {state}\n")), "{}", run.stdout);
        assert!(run.stdout.starts_with("message:\n"), "{text} says why: {}", run.stdout);
        assert!(run.stderr.contains("\nwarning: "), "{}", run.stderr);
        let failing = fleet.run(&["send", "probe", text, "--fail", "--json"]);
        assert!(failing.code == Some(1) && failing.stderr.starts_with("warning: "), "{text}: {}", failing.stderr);
    }
    assert_eq!(fleet.run(&["send", "probe", "hello", "--fail"]).code, Some(0));
}

#[test]
fn a_question_is_answered_with_the_command_that_is_shown() {
    let fleet = Fleet::new();
    let asked = fleet.run(&["send", "probe", "ask"]);
    let next = asked.stderr.lines().last().unwrap().strip_prefix("next: switchboard ").unwrap();
    assert_eq!(fleet.stable(next), "send probe --task-id ID1 'your answer'");
    let mut words: Vec<&str> = next.split(' ').take(4).collect();
    words.push("blue");
    let answered = fleet.run(&words);
    assert!(answered.stdout.contains("blue") && answered.stdout.contains("state: completed"), "{}", answered.stdout);
    let task = fleet.run(&["send", "echo", "one", "--json"]).json()["task"].clone();
    let context = task["contextId"].as_str().unwrap();
    let second = fleet.run(&["send", "echo", "two", "--context-id", context, "--json"]).json()["task"].clone();
    assert!(second["contextId"] == task["contextId"] && second["id"] != task["id"], "{second}");
}

#[test]
fn files_data_skills_and_metadata_are_sent_along() {
    let fleet = Fleet::new();
    std::fs::write(fleet.workspace.path().join("notes.md"), "# hi\n").unwrap();
    std::fs::write(fleet.workspace.path().join("more.json"), "{\"b\": 2}").unwrap();
    let arguments =
        ["send", "echo", "look", "--file", "notes.md", "--data", r#"{"a":1}"#, "--data", "more.json", "--json"];
    let parts = fleet.run(&arguments).json()["task"]["artifacts"][0]["parts"].clone();
    assert_eq!(parts[0], json!({ "text": "look" }));
    assert_eq!(parts[1], json!({ "raw": "IyBoaQo=", "filename": "notes.md", "mediaType": "text/markdown" }));
    assert_eq!(json!([parts[2]["data"], parts[3]["data"]]), json!([{ "a": 1 }, { "b": 2 }]));
    let text = fleet.run(&arguments[..arguments.len() - 1]);
    let shown = "artifact: echo\ntext:\n  look\n\nfile: notes.md, text/markdown, 5 bytes\ntask: ";
    assert!(text.stdout.starts_with(shown), "data is for programs: {}", text.stdout);
    let all = fleet.run(&[&arguments[..arguments.len() - 1], &["--verbose"]].concat()).stdout;
    assert!(all.contains("part: 3, data\ndata:\n  {\n    \"a\": 1\n  }\n\n"), "{all}");

    let skilled = fleet.run(&["send", "probe", "2", "--skill", "stream", "-q"]);
    assert_eq!(skilled.stdout, "chunk 1\nchunk 2\n", "{}", skilled.stderr);
    let metadata = ["--metadata", "team=blue", "--metadata", r#"{"n":7,"x":{"y":true}}"#];
    let sent = fleet.run(&[&["send", "echo", "hi", "--json"], &metadata[..]].concat()).json();
    let task = sent["task"]["id"].as_str().unwrap();
    let history = fleet.run(&["task", "get", "echo", task, "--history", "5", "--json"]).json()["history"].clone();
    assert_eq!(history[0]["metadata"], json!({ "team": "blue", "n": 7, "x": { "y": true } }), "{history}");
}

#[test]
fn nothing_that_an_agent_says_reaches_the_terminal_as_a_command() {
    let fleet = Fleet::new();
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}plain\ttext\r\nnext";
    let run = fleet.run(&["send", "echo", evil]);
    let clean = "text:\n  [2J]0;ownedplain\ttext\n  next\n\n";
    assert!(run.stdout.contains(clean), "{}", run.stdout);
    for how in ["--stream", "--verbose"] {
        let shown = fleet.run(&["send", "echo", evil, how]).stdout;
        assert!(shown.contains(clean) && !shown.contains(['\u{1b}', '\u{7}', '\r']), "{shown:?}");
    }
    // JSON says the same, with escapes for what a terminal obeys.
    let evil = "\u{9b}31m\u{202e}x\u{7f}\u{1b}\t\u{e4}";
    let run = fleet.run(&["send", "echo", evil, "-o", "json"]);
    assert!(run.stdout.contains(r"\u009b31m\u202ex\u007f\u001b\tä"), "{}", run.stdout);
    assert_eq!(run.json()["task"]["artifacts"][0]["parts"][0]["text"], evil);
}

#[test]
fn parts_keep_their_order_and_their_media_types() {
    let fleet = Fleet::new();
    std::fs::write(fleet.workspace.path().join("blob"), "x").unwrap();
    let parts = |arguments: &[&str], input: &str| {
        let run = fleet.workspace.run_with(&[&["send", "echo", "--json"], arguments].concat(), input);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run.json()["task"]["artifacts"][0]["parts"].clone()
    };
    let typed = [
        "--data",
        "{\"n\":1}",
        "--text",
        "two",
        "--media-type",
        "text/html",
        "--file",
        "blob",
        "--media-type",
        "image/png",
        "--text",
        "last",
    ];
    assert_eq!(
        parts(&typed, ""),
        json!([
            { "data": { "n": 1 } },
            { "text": "two", "mediaType": "text/html" },
            { "raw": "eA==", "filename": "blob", "mediaType": "image/png" },
            { "text": "last" },
        ])
    );
    assert_eq!(parts(&["first", "--data", "-"], "[1]\n"), json!([{ "text": "first" }, { "data": [1] }]));
    assert_eq!(parts(&["--file", "-"], "piped"), json!([{ "raw": "cGlwZWQ=", "mediaType": "text/plain" }]));
    for (name, content, media_type) in [
        ("report.PDF", &b"text"[..], "application/pdf"),
        ("Makefile", b"all:\n", "text/plain"),
        ("core", b"\x7fELF\0", "application/octet-stream"),
    ] {
        std::fs::write(fleet.workspace.path().join(name), content).unwrap();
        assert_eq!(parts(&["--file", name], "")[0]["mediaType"], media_type, "{name}");
    }
    for wrong in [
        &["--media-type", "text/html", "--text", "x"][..],
        &["--text", "x", "--media-type", "a/b", "--media-type", "c/d"],
        &["-", "--data", "-"],
        &["x", "--data", "-"],
    ] {
        let run = fleet.workspace.run_with(&[&["send", "echo", "--json"], wrong].concat(), "no json");
        assert_eq!((run.code, &run.json()["error"]["code"]), (Some(2), &json!("A2ACLI_ERR_USAGE")), "{wrong:?}");
    }
}

#[test]
fn a_way_that_the_agent_does_not_have_is_passed_over() {
    let fleet = Fleet::new();
    let used = |arguments: &[&str]| {
        let run = fleet.run(&[&["card", "echo"], arguments].concat());
        let line = run.stdout.lines().find(|line| line.starts_with("called at: ")).unwrap().to_owned();
        (line.split(' ').nth(2).unwrap().to_owned(), run.stderr)
    };
    assert_eq!(used(&[]), ("JSONRPC".to_owned(), String::new()));
    assert_eq!(used(&["--transport", "http+json", "--transport", "jsonrpc"]).0, "HTTP+JSON");
    assert_eq!(used(&["--transport", "jsonrpc,http+json"]).0, "JSONRPC");
    let (binding, warning) = used(&["--transport", "grpc", "--transport", "rest"]);
    assert_eq!(
        (binding.as_str(), warning.as_str()),
        ("HTTP+JSON", "warning: grpc is not spoken here and is passed over\n")
    );
}

#[test]
fn text_may_begin_with_a_dash_and_must_not_be_empty() {
    let fleet = Fleet::new();
    for arguments in [&["--text", "-dash text"][..], &["--", "-dash text"]] {
        let run = fleet.run(&[&["send", "echo", "-q"], arguments].concat());
        assert_eq!(run.stdout, "-dash text\n", "{arguments:?}: {}", run.stderr);
    }
    for text in ["-dash text", "-dash"] {
        let run = fleet.run(&["send", "echo", text]);
        let quoted = if text.contains(' ') { format!("'{text}'") } else { text.to_owned() };
        let tip = format!("text that begins with - is written after --: switchboard send AGENT -- {quoted}");
        assert!(run.code == Some(2) && run.stderr.contains(&tip), "{}", run.stderr);
    }
    for (arguments, input) in [(&["", "-q"][..], ""), (&["-"], "\n"), (&["--text", " "], ""), (&[""], "")] {
        let run = fleet.workspace.run_with(&[&["send", "echo", "--json"], arguments].concat(), input);
        assert_eq!((run.code, &run.json()["error"]["code"]), (Some(2), &json!("A2ACLI_ERR_USAGE")), "{arguments:?}");
    }
}

#[test]
fn parts_are_read_on_lines_of_their_own() {
    let fleet = Fleet::new();
    let parts = ["send", "echo", "--text", "hi", "--text", "there"];
    assert_eq!(fleet.run(&[&parts[..], &["-q"]].concat()).stdout, "hi\nthere\n");
    for how in [&[][..], &["--stream"]] {
        let run = fleet.run(&[&parts[..], how].concat());
        assert_eq!(run.stdout.matches("text:\n  hi\n  there\n\n").count(), 1, "{}", run.stdout);
    }
    let json = fleet.run(&[&parts[..], &["--json"]].concat()).json();
    assert_eq!(json["task"]["artifacts"][0]["parts"], json!([{ "text": "hi" }, { "text": "there" }]));
}

#[test]
fn what_an_agent_says_cannot_be_taken_for_what_we_say() {
    let fleet = Fleet::new();
    let forged = "x\n\nstate: failed\ntask: 1";
    for how in [&[][..], &["--stream"], &["--verbose"]] {
        let run = fleet.run(&[&["send", "echo", forged], how].concat());
        assert!(run.stdout.contains("text:\n  x\n\n  state: failed\n  task: 1\n\n"), "{}", run.stdout);
        assert!(!run.stdout.contains("\nstate: failed") && !run.stdout.contains("\ntask: 1\n"), "{}", run.stdout);
    }
    assert_eq!(fleet.run(&["send", "echo", forged, "-q"]).stdout, format!("{forged}\n"), "as it was said");
    let json = fleet.run(&["send", "echo", "\u{9b}31m\u{202e}", "--json"]);
    assert!(!json.stdout.contains(['\u{9b}', '\u{202e}']), "{:?}", json.stdout);
    assert_eq!(json.json()["task"]["artifacts"][0]["parts"], json!([{ "text": "\u{9b}31m\u{202e}" }]));
}

#[test]
fn a_file_that_is_elsewhere_has_a_name_and_a_type() {
    let fleet = Fleet::new();
    let sent = fleet.run(&["send", "echo", "--file", "http://x.example/a%20b/r%C3%A9+1.pdf?v=2", "--json"]).json();
    let part = &sent["task"]["artifacts"][0]["parts"][0];
    assert_eq!((&part["filename"], &part["mediaType"]), (&json!("r\u{e9}+1.pdf"), &json!("application/pdf")), "{part}");
    let bare = fleet.run(&["send", "echo", "--file", "http://x.example/", "--json"]).json();
    assert_eq!(bare["task"]["artifacts"][0]["parts"], json!([{ "url": "http://x.example/" }]));
}
