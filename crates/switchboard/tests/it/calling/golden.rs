//! What every command prints, whole: as text, on a terminal, as JSON, and what it says when something is wrong. Ids, times
//! and addresses are replaced. `INSTA_UPDATE=always` writes what is printed now; read it before you keep it.

use insta::assert_snapshot;

use super::terminal::{Terminal, still};
use super::{Fleet, free_address, something_else};
use crate::program::{Run, Workspace};

/// Commands and what they print, as a terminal would show it: standard error with a `!` in front.
struct Transcript<'a> {
    fleet: &'a Fleet,
    text: String,
}

impl<'a> Transcript<'a> {
    fn new(fleet: &'a Fleet) -> Self {
        Self { fleet, text: String::new() }
    }

    fn run(&mut self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "")
    }

    fn run_with(&mut self, arguments: &[&str], input: &str) -> Run {
        let run = self.fleet.workspace.run_with(arguments, input);
        self.begin(arguments);
        self.text.push_str(&run.stdout);
        for line in run.stderr.lines() {
            self.text.push_str(format!("! {line}").trim_end());
            self.text.push('\n');
        }
        self.end(run.code);
        run
    }

    /// The same on a terminal, where everything is on one screen.
    fn on_terminal(&mut self, arguments: &[&str]) {
        let (screen, code) = Terminal::run(&self.fleet.workspace, arguments).end();
        self.begin(arguments);
        self.text.push_str(&still(&screen));
        self.end(code);
    }

    fn begin(&mut self, arguments: &[&str]) {
        let quoted =
            |word: &&str| if word.contains([' ', '{', '(']) { format!("'{word}'") } else { (*word).to_owned() };
        let words: Vec<String> = arguments.iter().map(quoted).collect();
        self.text.push_str(&format!("$ switchboard {}\n", words.join(" ")));
    }

    fn end(&mut self, code: Option<i32>) {
        if code != Some(0) {
            self.text.push_str(&format!("exit code {}\n", code.unwrap()));
        }
        self.text.push('\n');
    }

    fn stable(&self) -> String {
        self.fleet.stable(&self.text)
    }
}

const SENDS: [&[&str]; 9] = [
    &["send", "echo", "hello"],
    &["send", "probe", "stream:3"],
    &["send", "probe", "data"],
    &["send", "probe", "message"],
    &["send", "probe", "ask"],
    &["send", "probe", "auth"],
    &["send", "probe", "err"],
    &["send", "probe", "reject"],
    &["send", "echo", "hello", "--quiet"],
];

#[test]
fn send() {
    let fleet = Fleet::new();
    let mut text = Transcript::new(&fleet);
    SENDS.iter().for_each(|arguments| drop(text.run(arguments)));
    text.run(&["send", "echo", "hello", "--verbose"]);
    text.run(&["send", "probe", "stream:2", "--stream"]);
    text.run(&["send", "probe", "ask", "--stream"]);
    assert_snapshot!("send_text", text.stable());

    let mut terminal = Transcript::new(&fleet);
    SENDS.iter().for_each(|arguments| terminal.on_terminal(arguments));
    terminal.on_terminal(&["send", "probe", "stream:2", "--stream"]);
    assert_snapshot!("send_terminal", terminal.stable());

    let mut json = Transcript::new(&fleet);
    for arguments in &SENDS[..8] {
        json.run(&[arguments, &["-o", "json"][..]].concat());
    }
    json.run(&["send", "probe", "stream:2", "--stream", "-o", "json"]);
    json.run(&["send", "probe", "message", "--stream", "-o", "json"]);
    assert_snapshot!("send_json", json.stable());
}

#[test]
fn tasks() {
    let fleet = Fleet::of(Workspace::new().file("switchboard.yaml", "webhooks: { allowedHosts: [hooks.example] }\n"));
    std::fs::write(fleet.workspace.path().join("in.txt"), "content\n").unwrap();
    let sent = fleet.run(&["send", "echo", "hello", "--file", "in.txt", "--json"]).json();
    let done = sent["task"]["id"].as_str().unwrap().to_owned();
    let asking = fleet.run(&["send", "probe", "ask", "--json"]).json()["task"]["id"].as_str().unwrap().to_owned();
    let (held, stopped) = (fleet.begin("probe", "hold"), fleet.begin("probe", "hold"));
    let hook = ["task", "push-config", "set", "probe", &held, "--id", "w1", "--url", "https://hooks.example/in"];
    let commands: [&[&str]; 15] = [
        &["task", "get", "echo", &done],
        &["task", "get", "echo", &done, "--history", "2"],
        &["task", "get", "echo", &done, "--verbose"],
        &["task", "get", "probe", &asking, "--wait"],
        &["task", "subscribe", "echo", &done],
        &["task", "subscribe", "probe", &asking, "--stream"],
        &["task", "list", "echo"],
        &["task", "list", "echo", "--status", "failed"],
        &["task", "cancel", "probe", &stopped],
        &["task", "download", "echo", &done, "--out", "got", "--force"],
        &hook,
        &["task", "push-config", "get", "probe", &held, "w1"],
        &["task", "push-config", "list", "probe", &held],
        &["task", "push-config", "delete", "probe", &held, "w1"],
        &["task", "push-config", "list", "probe", &held],
    ];
    let mut text = Transcript::new(&fleet);
    commands.iter().for_each(|arguments| drop(text.run(arguments)));
    assert_snapshot!("task_text", text.stable());
    let mut terminal = Transcript::new(&fleet);
    commands.iter().for_each(|arguments| terminal.on_terminal(arguments));
    assert_snapshot!("task_terminal", terminal.stable());
    let mut json = Transcript::new(&fleet);
    for arguments in commands {
        json.run(&[arguments, &["-o", "json"][..]].concat());
    }
    json.run(&["task", "list", "echo", "--stream", "-o", "json"]);
    assert_snapshot!("task_json", json.stable());
}

#[test]
fn agents_and_their_cards() {
    let fleet = Fleet::new();
    let commands: [&[&str]; 6] = [
        &["agents"],
        &["card", "echo"],
        &["card", "get", "-a", "echo", "--validate"],
        &["card", "echo", "--extended"],
        &["skills", "guide"],
        &["config", "show", "--timeout", "30s"],
    ];
    let mut text = Transcript::new(&fleet);
    commands.iter().for_each(|arguments| drop(text.run(arguments)));
    assert_snapshot!("card_text", text.stable());
    let mut terminal = Transcript::new(&fleet);
    commands[..5].iter().for_each(|arguments| terminal.on_terminal(arguments));
    assert_snapshot!("card_terminal", terminal.stable());
    let mut json = Transcript::new(&fleet);
    for arguments in commands {
        json.run(&[arguments, &["-o", "json"][..]].concat());
    }
    json.run(&["card", "echo", "--stream", "-o", "json"]);
    assert_snapshot!("card_json", json.stable());
}

#[test]
fn chat() {
    let fleet = Fleet::new();
    let mut piped = Transcript::new(&fleet);
    piped.run_with(&["chat", "probe"], "hello\nask\nblue\n/task\n");
    piped.run_with(&["chat", "probe", "-o", "json"], "hello\n");
    assert_snapshot!("chat_piped", piped.stable());

    let mut terminal = Terminal::run(&fleet.workspace, &["chat", "probe"]);
    terminal.until("> ");
    for (line, answer) in
        [("stream:2", "chunk 2"), ("ask", "What shall I repeat?"), ("blue", "blue\r\n"), ("err", "fail")]
    {
        terminal.say(line);
        terminal.until(answer);
    }
    terminal.say("/quit");
    let (screen, code) = terminal.end();
    // What is typed ahead is echoed when it is typed, so that only what the agent says has a certain place.
    let said: Vec<&str> =
        ["chunk 1", "chunk 2", "What shall I repeat?", "this probe was told to fail", "state: failed"]
            .into_iter()
            .filter(|line| still(&screen).contains(line))
            .collect();
    assert_eq!((said.len(), code), (5, Some(0)), "{screen}");
    assert!(screen.starts_with("/done ends the conversation, /quit leaves it, /task shows where it stands\r\n> "));
    assert!(!screen.contains("artifact:"), "people read it, no program: {screen}");
}

/// Tells all that a coding agent tells: its session, its thoughts, its tools, what it used; and asks.
const CODER: &str = r#"
read -r prompt
echo '{"kind":"init","session":"s1","model":"m-1"}'
echo '{"kind":"reasoning","text":"Let me think."}'
echo '{"kind":"text","text":"I will fix "}'
echo '{"kind":"text","text":"two files."}'
echo '{"kind":"text_end"}'
echo '{"kind":"approval_required","request":"r","tool":"fix","input":{"files":2},"prompt":"Fix 2 files","choices":[{"id":"half","label":"Only the first"}]}'
read -r answer
echo '{"kind":"usage","input_tokens":10,"output_tokens":5,"cost_usd":0.01}'
echo '{"kind":"files_changed","paths":["a","b"]}'
case $answer in
*'"decision":"allow"'*) echo '{"kind":"text","text":"Fixed both."}'; echo '{"kind":"done"}' ;;
*) echo '{"kind":"done","answer":"Left as it was."}' ;;
esac
"#;

/// How to answer in words is the agent's to say, and is tested there.
fn without_instructions(transcript: &Transcript<'_>) -> String {
    let lines = transcript.stable();
    let lines = lines.lines().filter(|line| !line.trim_start().starts_with("Answer "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_coding_agent_asks_and_answers_without_json() {
    let agents = "agents:\n  - { name: coder, cli: generic, command: [/bin/sh, ./coder.sh], output: jsonl, approval: { events: true }, cwd: . }\n";
    let workspace = Workspace::new().file("agents.yaml", agents).file("coder.sh", CODER);
    let fleet = Fleet::of(workspace.variable("PATH", "/usr/bin:/bin"));
    let open = || {
        let listed = fleet.run(&["task", "list", "coder", "--status", "input-required", "--json"]).json();
        listed["tasks"][0]["id"].as_str().unwrap().to_owned()
    };
    let mut text = Transcript::new(&fleet);
    let asked = text.run(&["send", "coder", "fix it"]);
    let task = open();
    let commands: Vec<&str> = asked.stderr.lines().filter_map(|line| line.strip_prefix("  switchboard ")).collect();
    let words: Vec<&str> = commands[0].split(' ').collect();
    assert_eq!((commands.len(), words.last()), (4, Some(&"allow")), "{}", asked.stderr);
    text.run(&words);
    text.run(&["task", "get", "coder", &task]);
    text.run(&["send", "coder", "fix it", "-q"]);
    text.run(&["send", "coder", "--task-id", &open(), "n", "-q"]);
    assert_snapshot!("coding_agent_text", without_instructions(&text));

    let mut terminal = Transcript::new(&fleet);
    terminal.on_terminal(&["send", "coder", "fix it"]);
    terminal.on_terminal(&["send", "coder", "--task-id", &open(), "allow"]);
    terminal.on_terminal(&["send", "coder", "fix it", "-q"]);
    terminal.on_terminal(&["send", "coder", "--task-id", &open(), "n", "-q"]);
    assert_snapshot!("coding_agent_terminal", without_instructions(&terminal));

    let mut chat = Transcript::new(&fleet);
    chat.run_with(&["chat", "coder"], "fix it\nhalf\n");
    assert_snapshot!("coding_agent_chat", without_instructions(&chat));
    let verbose = fleet.run(&["task", "get", "coder", &task, "--verbose"]).stdout;
    assert!(verbose.contains("\"costUsd\": 0.01") && verbose.contains("sessionId"), "{verbose}");
}

#[test]
fn quiet_prints_the_same_on_a_terminal_and_in_a_pipe() {
    let fleet = Fleet::new();
    for text in ["hello", "stream:3", "data", "message", "ask", "err"] {
        let arguments = ["send", "probe", text, "-q"];
        let piped = fleet.run(&arguments).stdout;
        let screen = still(&Terminal::run(&fleet.workspace, &arguments).end().0);
        assert!(!piped.is_empty() && screen.starts_with(&piped), "{text}: {piped:?} {screen:?}");
        assert!(text == "data" || !piped.contains('{'), "{piped}");
    }
}

#[test]
fn errors() {
    let fleet = Fleet::of(Workspace::new().file("switchboard.yaml", "store: { durability: process }\n"));
    let page = something_else(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 36\r\nconnection: close\r\n\r\n<html><title>Sign in</title></html>\n",
    );
    let closed = something_else("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let free = free_address();
    let done = fleet.run(&["send", "echo", "hi", "--json"]).json()["task"]["id"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 16] = [
        &["send", "ehco", "hi"],
        &["send", "missing", "hi"],
        &["send"],
        &["send", "echo"],
        &["send", "echo", "hi", "--timeout", "soon"],
        &["send", "probe", "hold", "--timeout", "5s"],
        &["send", &page, "hi"],
        &["card", &closed],
        &["card", &closed, "--bearer", "hunter2"],
        &["card", &free],
        &["card", "./nothing.json"],
        &["task", "get", "echo", "nothing"],
        &["task", "cancel", "echo", &done],
        &["send", "echo", "more", "--task-id", &done],
        &["send", "echo", "--data", "{no json"],
        &["chat", &free],
    ];
    let replaced = |text: String| text.replace(&page, "PAGE").replace(&closed, "CLOSED").replace(&free, "FREE");
    let mut text = Transcript::new(&fleet);
    commands.iter().for_each(|arguments| drop(text.run_with(arguments, "hi\n")));
    assert_snapshot!("errors_text", replaced(text.stable()));
    let mut json = Transcript::new(&fleet);
    for arguments in commands {
        json.run_with(&[arguments, &["-o", "json"][..]].concat(), "hi\n");
    }
    assert_snapshot!("errors_json", replaced(json.stable()));
    let Fleet { workspace, server } = fleet;
    server.stop();
    let workspace = workspace.variable("SWITCHBOARD_SERVER_BIND", &free);
    let idle = workspace.run(&["send", "echo", "hi"]);
    let folder = workspace.path().canonicalize().unwrap();
    let idle = idle.stderr.replace(folder.to_str().unwrap(), "FOLDER").replace(&free, "FREE");
    assert_snapshot!("errors_no_server", idle);
}

#[test]
fn help() {
    let workspace = Workspace::new();
    let commands: [&[&str]; 21] = [
        &[],
        &["send"],
        &["chat"],
        &["card"],
        &["card", "get"],
        &["skills"],
        &["task"],
        &["task", "get"],
        &["task", "list"],
        &["task", "cancel"],
        &["task", "subscribe"],
        &["task", "download"],
        &["task", "push-config"],
        &["task", "push-config", "set"],
        &["agents"],
        &["auth"],
        &["auth", "login"],
        &["auth", "logout"],
        &["config"],
        &["config", "show"],
        &["completion"],
    ];
    let mut shown = String::new();
    for command in commands {
        let run = workspace.run(&[command, &["--help"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{command:?}");
        let own = run.stdout.replace("How to call it:\n", "\u{1}");
        // How to call an agent is the same for all of them, and shown once.
        let own = match own.split_once('\u{1}') {
            Some((before, rest)) if command != ["send"] => {
                let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
                format!("{before}How to call it: as above\n\n{after}")
            }
            _ => run.stdout,
        };
        shown.push_str(&format!("$ switchboard {} --help\n{own}\n", command.join(" ")));
    }
    assert_snapshot!("help", shown);
}

#[test]
fn a_terminal_that_can_do_little_gets_nothing_but_text() {
    let fleet = Fleet::new();
    let xterm = ("TERM", "xterm");
    // By convention an empty `NO_COLOR` counts as unset.
    for variables in [&[("TERM", "dumb")][..], &[xterm], &[xterm, ("NO_COLOR", "")], &[xterm, ("NO_COLOR", "1")]] {
        let sent = Terminal::run_with(&fleet.workspace, &["send", "probe", "err"], variables).end().0;
        let failed = Terminal::run_with(&fleet.workspace, &["send", "missing", "hi"], variables).end().0;
        let (is_dumb, is_plain) = (variables[0].1 == "dumb", variables.last() == Some(&("NO_COLOR", "1")));
        assert_eq!(sent.contains("\u{1b}[2K"), !is_dumb, "the line that moves: {sent:?}");
        assert_eq!(failed.contains("\u{1b}[1;31merror:\u{1b}[0m"), !is_dumb && !is_plain, "colour: {failed:?}");
    }
}
