//! Where a test's agent lives: its folder, its programs, its data. It outlives servers that are killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_cli_agents::adapters::{Declared, GenericOptions, Input, Output};
use switchboard_cli_agents::{Settings, Worker};
use tempfile::TempDir;

/// What every program of these tests can say.
const WORDS: &str = r#"
tell() { printf '%s\n' "$1"; }
text() { tell "{\"kind\":\"text\",\"text\":\"$1\"}"; }
finish() { tell "{\"kind\":\"done\",\"answer\":\"$1\"}"; }
# hear: reads one line and notes it in the file `heard`.
hear() { IFS= read -r line || return 1; printf '%s\n' "$line" >> "$NOTES/heard"; }
# ask REQUEST TOOL: asks and goes on.
ask() { tell "{\"kind\":\"approval_required\",\"request\":\"$1\",\"tool\":\"$2\",\"input\":{\"command\":\"ls\"},\"prompt\":\"Use $2 for $1\"}"; }
# note NAME TEXT: writes a file for the test to read, all at once.
note() { printf '%s' "$2" > "$NOTES/$1.part" && mv "$NOTES/$1.part" "$NOTES/$1"; }
# await NAME: waits for a file that the test writes.
await() { while [ ! -e "$NOTES/$1" ]; do sleep 0.01; done; }
"#;

/// A folder for everything of one test.
pub(crate) struct Fixture {
    folder: TempDir,
    programs: AtomicUsize,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), programs: AtomicUsize::new(0) };
        std::fs::create_dir(fixture.work()).unwrap();
        std::fs::create_dir(fixture.notes()).unwrap();
        fixture
    }

    /// The folder that the agent works in.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where programs and tests write for each other; `$NOTES` in programs.
    pub(crate) fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    /// Where the server keeps its things.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program: a shell script that knows the [`WORDS`]. Its file is read by the shell and never run itself, since
    /// a file that was just written cannot always be.
    pub(crate) fn script(&self, name: &str, text: &str) -> Vec<String> {
        let path = self.folder.path().join(name);
        let notes = self.notes();
        let text = format!("NOTES='{}'\n{WORDS}\n{text}\n", notes.display());
        std::fs::write(&path, text).unwrap();
        ["sh".to_owned(), path.to_str().unwrap().to_owned()].into()
    }

    /// A program that speaks events and is asked on its standard input.
    pub(crate) fn asking(&self, text: &str) -> Declared {
        self.generic(text, |_| ())
    }

    /// The same, used in another way.
    pub(crate) fn generic(&self, text: &str, change: impl FnOnce(&mut GenericOptions)) -> Declared {
        let mut options = GenericOptions {
            command: self.script(&format!("program-{}", self.programs.fetch_add(1, Ordering::Relaxed)), text),
            input: Input::Stdin,
            output: Output::Jsonl { asks: true },
        };
        change(&mut options);
        Declared::generic(options).unwrap()
    }

    /// An agent that is such a program.
    pub(crate) fn settings(&self, text: &str) -> Settings {
        Settings::new("coder", Worker::new(self.asking(text)), self.work())
    }

    /// What a program noted; it may still have to be written.
    pub(crate) fn noted(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.notes().join(name)).ok()
    }

    /// What the program has heard, line by line.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.noted("heard").unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Lets programs go on that await this.
    pub(crate) fn allow(&self, name: &str) {
        std::fs::write(self.notes().join(name), "").unwrap();
    }

    /// Makes the agent's folder a repository with one commit.
    pub(crate) fn repository(&self) {
        std::fs::write(self.work().join("readme"), "one\n").unwrap();
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", "first"]);
    }

    /// Runs git in the agent's folder and says what it printed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgSign=false"];
        let output = Command::new("git").args(who).args(args).current_dir(self.work()).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }
}

/// Whether a process is there and not only waiting to be reaped.
pub(crate) fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
}
