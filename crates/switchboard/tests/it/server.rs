//! The real `serve`, running in a workspace; ended when the test is over.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{self, Answer};
use crate::program::Workspace;

/// The last line of what `serve` says when it is ready.
const READY: &str = "Ctrl-C stops it";

pub(crate) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// What it said when it was ready.
    pub(crate) greeting: Vec<String>,
    /// Where it listens.
    pub(crate) address: String,
}

impl Server {
    /// Starts it on a free port of loopback.
    pub(crate) fn start(workspace: &Workspace) -> Self {
        Self::start_with(workspace, &["--bind", "127.0.0.1:0"])
    }

    pub(crate) fn start_with(workspace: &Workspace, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.arg("serve").args(arguments);
        Self::spawn(workspace, command)
    }

    /// Starts it from a shell, after a line that limits what it may have. What it complains of is in `stderr.txt`, unless
    /// the line says otherwise.
    pub(crate) fn start_after(workspace: &Workspace, line: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        let line = format!("exec 2>stderr.txt && {line} && exec \"$0\" serve --bind 127.0.0.1:0");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_switchboard")]);
        Self::spawn(workspace, command)
    }

    /// Starts it with a standard error of the test's choice.
    pub(crate) fn start_logging_to(workspace: &Workspace, stderr: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.args(["serve", "--bind", "127.0.0.1:0"]).stderr(stderr);
        Self::spawn(workspace, command)
    }

    fn spawn(workspace: &Workspace, mut command: Command) -> Self {
        let mut child = command
            .current_dir(workspace.path())
            .env_clear()
            .envs(workspace.variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut greeting = Vec::new();
        while greeting.last().is_none_or(|line| line != READY) {
            greeting.push(lines.next().unwrap_or_else(|| panic!("it ended: {greeting:?}")).unwrap());
        }
        let address = greeting[0].rsplit("://").next().unwrap().replace("0.0.0.0", "127.0.0.1");
        Self { child, lines, greeting, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The line under a heading of the greeting.
    pub(crate) fn line_under(&self, heading: &str) -> &str {
        let place = self.greeting.iter().position(|line| line == heading);
        self.greeting[place.unwrap_or_else(|| panic!("no {heading}")) + 1].trim()
    }

    pub(crate) fn get(&self, path: &str, key: &str) -> Answer {
        self.call("GET", path, key, "")
    }

    /// Sends a text to an agent; `operation` is `send` or `stream`.
    pub(crate) fn message(&self, agent: &str, operation: &str, text: &str, key: &str) -> Answer {
        let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } });
        let path = format!("/a2a/{agent}/message:{operation}");
        self.call("POST", &path, key, &message.to_string())
    }

    /// Sends a text to an agent with a webhook, and does not wait for the task to end.
    pub(crate) fn send_with(&self, agent: &str, text: &str, webhook: &Value) -> Answer {
        let body = json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] },
            "configuration": { "returnImmediately": true, "taskPushNotificationConfig": webhook },
        });
        self.post(&format!("/a2a/{agent}/message:send"), "", &body.to_string())
    }

    pub(crate) fn post(&self, path: &str, key: &str, body: &str) -> Answer {
        self.call("POST", path, key, body)
    }

    fn call(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        let mut headers = vec![("A2A-Version", "1.0")];
        if !key.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        http::request(&self.address, method, path, &headers, body)
    }

    /// The next line it says.
    pub(crate) fn says(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for its end; what it said since it was ready, and how it ended.
    pub(crate) fn ended(mut self) -> (Vec<String>, ExitStatus) {
        let said = self.lines.by_ref().map(Result::unwrap).collect();
        (said, self.child.wait().unwrap())
    }

    /// Stops it in order.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.signal("INT");
        let (said, status) = self.ended();
        assert_eq!(status.code(), Some(0), "{said:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long something takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = work();
    (result, begin.elapsed())
}
