//! The examples as a person runs them: they say where they are, greet, and end with Ctrl-C.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running example.
struct Hello {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Hello {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::spawn(&mut program(folder, arguments))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.rsplit("http://").next().unwrap().to_owned();
        Self { child, lines, address }
    }

    /// Sends `hello` a name and returns what it answers.
    fn greet(&self, name: &str) -> String {
        self.send("/a2a/hello", name)
    }

    /// Sends a name to an agent's address and returns the response.
    fn send(&self, agent: &str, name: &str) -> String {
        let address = &self.address;
        let body = format!(r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{name}"}}]}}}}"#);
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let head = format!("POST {agent}/message:send HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn stop(mut self) {
        let kill = format!("kill -INT {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(folder: &Path, arguments: &[&str]) -> Command {
    program_of(env!("CARGO_BIN_EXE_hello-agent"), folder, arguments)
}

fn program_of(path: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(folder).env_clear();
    command
}

#[test]
fn greets_its_callers() {
    let folder = tempfile::tempdir().unwrap();
    let mut hello = Hello::start(folder.path(), &["--bind", "127.0.0.1:0"]);
    assert!(hello.lines.any(|line| line.unwrap().contains("/a2a/hello/message:send")), "a line to copy");
    let answer = hello.greet("Ada");
    assert!(answer.contains("Hello, Ada!") && answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    hello.stop();
}

#[test]
fn a_second_one_runs_beside_it_as_the_readme_says() {
    let readme = include_str!("../../../README.md");
    let line = readme.lines().find_map(|line| line.strip_prefix("cargo run -p hello-agent -- ")).unwrap();
    let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
    let folder = tempfile::tempdir().unwrap();
    let first = Hello::start(folder.path(), &["--bind", "127.0.0.1:0"]);
    // Without them it says which flags to use, and these are the flags.
    let refused = program(folder.path(), &["--bind", "127.0.0.1:0"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("--data-dir DIR"), "{told}");
    let refused = program(folder.path(), &["--bind", &first.address, "--data-dir", "other"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("--bind 127.0.0.1:PORT"), "{told}");

    let mut second = Hello::start(folder.path(), &words);
    let data_dir = folder.path().canonicalize().unwrap().join(words[words.len() - 1]);
    let call = format!("switchboard send --data-dir {} hello", data_dir.display());
    assert!(second.lines.any(|line| line.unwrap().contains(&call)), "no {call}");
    assert!(second.greet("Bob").contains("Hello, Bob!"));
    assert!(first.greet("Ada").contains("Hello, Ada!"));
    second.stop();
    first.stop();
}

#[test]
fn it_takes_the_flags_of_a_server_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let help = program(folder.path(), &["--help"]).output().unwrap();
    let told = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success(), "{told}");
    for flag in ["--bind", "--data-dir", "--workspace", "switchboard.yaml"] {
        assert!(told.contains(flag), "{told}");
    }
    assert!(!told.contains("agents.yaml"), "it has its agent and reads no file of agents: {told}");
    let wrong = program(folder.path(), &["--colour"]).output().unwrap();
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{told}");
    assert!(told.contains("--colour") && told.contains("--help"), "{told}");
    let nowhere = program(folder.path(), &["--workspace", "nowhere"]).output().unwrap();
    let told = String::from_utf8(nowhere.stderr).unwrap();
    assert!(nowhere.status.code() == Some(1) && told.contains("nowhere does not exist"), "{told}");
}

#[test]
fn files_of_agents_in_its_folder_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.yaml"), "agents: this is not read").unwrap();
    std::fs::create_dir(folder.path().join("agents.d")).unwrap();
    let stderr = folder.path().join("stderr");
    let mut command = program(folder.path(), &["--bind", "127.0.0.1:0"]);
    let hello = Hello::spawn(command.stderr(File::create(&stderr).unwrap()));
    assert!(hello.greet("Ada").contains("Hello, Ada!"));
    hello.stop();
    let told = std::fs::read_to_string(&stderr).unwrap();
    for file in ["agents.yaml", "agents.d"] {
        let warning = format!("{file} is not read: this program brings its own agents, switchboard serve reads it");
        assert!(told.contains(&warning), "{told}");
    }
}

#[test]
fn several_agents_of_one_program_answer_at_their_own_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let path = env!("CARGO_BIN_EXE_two-agents");
    let mut both = Hello::spawn(&mut program_of(path, folder.path(), &["--bind", "127.0.0.1:0"]));
    for name in ["welcome", "goodbye"] {
        let card = format!("/a2a/{name}/.well-known/agent-card.json");
        assert!(both.lines.any(|line| line.unwrap().contains(&card)), "no {card}");
    }
    for (agent, greeting) in [("/a2a/welcome", "Welcome, Ada!"), ("/a2a/goodbye", "Goodbye, Ada!")] {
        let answer = both.send(agent, "Ada");
        assert!(answer.contains(greeting) && answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    }
    let root = both.send("", "Ada");
    assert!(root.starts_with("HTTP/1.1 404") && root.contains("name one: welcome, goodbye"), "{root}");
    both.stop();
}
