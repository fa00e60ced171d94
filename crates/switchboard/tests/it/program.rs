//! Runs the binary in a workspace folder of its own, with an environment that holds only what the test puts there.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The answer as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// The lines on standard error that report an error, without their beginning.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect()
    }

    /// Value and origin of a setting in the answer of `config check -o json`.
    pub(crate) fn setting(&self, key: &str) -> (Value, Value) {
        let answer = self.json();
        let settings = answer["settings"].as_array().unwrap_or_else(|| panic!("no settings: {}", self.stdout));
        let setting = settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}"));
        (setting["value"].clone(), setting["origin"].clone())
    }
}

/// A workspace folder.
pub(crate) struct Workspace {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a file there.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Sets an environment variable.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The environment variables it sets.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.clone().into_iter()
    }

    /// Runs the binary with this folder as the current one.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "")
    }

    /// The same with something to read on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .envs(self.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `config check -o json` and expects it to be content.
    pub(crate) fn good(&self) -> Run {
        let run = self.run(&["config", "check", "-o", "json"]);
        assert_eq!(run.code, Some(0), "{}", run.stdout);
        run
    }

    /// Runs `config check` and expects exactly these errors, each without its `error: `.
    #[track_caller]
    pub(crate) fn refused(&self, errors: &[&str]) {
        let run = self.run(&["config", "check"]);
        assert_eq!(run.errors(), errors);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.lines().last().unwrap().starts_with("next: "), "{}", run.stderr);
    }
}
