//! The workspace of the torture: agents that are a script, one for each way of using a repository, and what there is to
//! see of them from outside.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::server::{ANY_PORT, ServerSetup, folder};

/// Does what the words of its prompt say, as a coding agent might. What it starts sleeps for far longer than the hang guard,
/// so that it is gone only if the server has ended it.
const PROGRAM: &str = r#"
tell() { printf '%s\n' "$1"; }
told() { case "$prompt" in *"$1"*) return 0;; esac; return 1; }
IFS= read -r prompt
time=${prompt##*for=}; time=${time%%;*}
if told deaf; then trap '' TERM; fi
tell '{"kind":"init","model":"none"}'
tell '{"kind":"text","text":"I begin."}'
if told longline; then head -c 1100000 /dev/zero | tr '\0' x; echo; fi
if told garbage; then printf '\377\376{"kind":\200\n\033[31m{"kind":"te\n[[[[\n{"kind":7}\n\0\n'; fi
if told flood; then head -c 3000000 /dev/zero | tr '\0' e >&2; fi
if told tool; then
    tell '{"kind":"tool_use","id":"1","tool":"Bash","input":{"command":"sleep"}}'
    setsid sleep 3600 </dev/null >/dev/null 2>&1 &
fi
# It keeps the pipes open when its parent is gone.
if told holds; then setsid sleep 3600 & fi
# Nothing ties it to its parent once that is gone.
if told wiped; then env -i PATH="$PATH" setsid sleep 3600 </dev/null >/dev/null 2>&1 & fi
if told asks; then
    tell '{"kind":"approval_required","request":"1","tool":"Bash","input":{"command":"ls"},"prompt":"Run ls"}'
    IFS= read -r answer
    tell '{"kind":"text","text":"I was answered."}'
fi
if told changes; then echo "$$" > "changed-by-$$"; fi
# A copy that is broken, within the repository of the workspace.
if told breaks && [ -f .git ]; then rm .git; fi
if told mute; then exec >&-; fi
sleep "$time"
if told mute || told quits; then exit 0; fi
if told fails; then tell '{"kind":"error","message":"I cannot."}'; exit 1; fi
if told tool; then tell '{"kind":"tool_result","id":"1","output":"done"}'; fi
tell '{"kind":"done","answer":"I am done."}'
if told lingers; then sleep 3600; fi
"#;

/// Agents, and what they do with their repositories.
const AGENTS: [(&str, &str); 4] = [
    ("free", "repoLock: false, limits: { line: 256KiB }"),
    ("locked", "repoLock: true"),
    ("removed", "worktree: remove"),
    ("kept", "worktree: keep"),
];

/// Where tasks are sent.
pub const PATHS: [&str; 4] = ["/a2a/free", "/a2a/locked", "/a2a/removed", "/a2a/kept"];
/// The agent that keeps the branches of its tasks.
pub const KEPT: &str = "kept";

/// The workspace.
pub struct Workspace {
    /// How to start its server.
    pub setup: ServerSetup,
}

/// A program that is at work.
pub struct Running {
    /// Its process.
    pub pid: i32,
    /// What it and everything it starts carries in its environment.
    pub marker: String,
}

impl Workspace {
    /// Makes the workspace and its repositories.
    pub fn build(scratch: &Path, binary: &Path) -> anyhow::Result<Self> {
        let workspace = folder(scratch, "workspace")?;
        let program = scratch.join("program.sh");
        std::fs::write(&program, PROGRAM)?;
        // It is in a repository itself, with a change in it that no agent may commit.
        std::fs::write(workspace.join("own"), "one\n")?;
        git(&workspace, &["init", "--quiet", "--initial-branch=main"])?;
        git(&workspace, &["add", "own"])?;
        git(&workspace, &["commit", "--quiet", "-m", "own"])?;
        std::fs::write(workspace.join("own"), "not yet\n")?;
        let mut agents = "agents:\n".to_owned();
        for (name, keys) in AGENTS {
            let repository = folder(&workspace, name)?;
            std::fs::write(repository.join("readme"), "one\n")?;
            git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
            git(&repository, &["add", "--all"])?;
            git(&repository, &["commit", "--quiet", "-m", "first"])?;
            agents.push_str(&format!(
                "  - {{ name: {name}, cli: generic, command: [sh, {program:?}], output: jsonl, \
                 approval: {{ events: true }}, cwd: ./{name}, maxParallel: 4, {keys} }}\n"
            ));
        }
        std::fs::write(workspace.join("agents.yaml"), agents)?;
        let log = scratch.join("server.log");
        Ok(Self {
            setup: ServerSetup { binary: binary.to_owned(), workspace, durability: "process", log, bind: ANY_PORT },
        })
    }

    fn data(&self) -> PathBuf {
        self.setup.workspace.join(".switchboard")
    }

    /// What all markers of this server's programs begin with.
    pub fn ledger_name(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.data().join("children/name"))?)
    }

    /// What the ledger of programs still holds.
    #[must_use]
    pub fn ledger(&self) -> Vec<PathBuf> {
        let all = entries(&self.data().join("children"));
        all.into_iter().filter(|file| file.file_name().is_none_or(|name| name != "name")).collect()
    }

    /// The program of a task, if one is at work.
    #[must_use]
    pub fn program_of(&self, task: &str) -> Option<Running> {
        let read = |file: PathBuf| serde_json::from_str::<Value>(&std::fs::read_to_string(file).ok()?).ok();
        let record = self.ledger().into_iter().filter_map(read).find(|record| record["label"] == task)?;
        let pid = record["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
        Some(Running { pid, marker: record["marker"].as_str()?.to_owned() })
    }

    /// Copies of repositories that are there, and what is written down about them.
    #[must_use]
    pub fn copies(&self) -> Vec<PathBuf> {
        entries(&self.data().join("worktrees")).iter().flat_map(|agent| entries(agent)).collect()
    }

    /// For each repository its name, the copies that git knows of, and its branches beside the first.
    pub fn repositories(&self) -> anyhow::Result<Vec<(&'static str, usize, Vec<String>)>> {
        let look = |name: &'static str| {
            let repository = self.setup.workspace.join(name);
            // Not by `git worktree list` and `git branch`, which fail if a copy is removed while they look.
            let known = entries(&repository.join(".git/worktrees")).len();
            let branches = git(&repository, &["for-each-ref", "refs/heads", "--format=%(refname:short)"])?;
            let branches = branches.lines().filter(|branch| *branch != "main").map(str::to_owned).collect();
            Ok((name, known, branches))
        };
        AGENTS.into_iter().map(|(name, _)| look(name)).collect()
    }

    /// Whether the repository around them all is as it was.
    pub fn is_own_untouched(&self) -> anyhow::Result<bool> {
        let commits = git(&self.setup.workspace, &["rev-list", "--count", "--all"])?;
        let changed = git(&self.setup.workspace, &["diff", "--name-only"])?;
        Ok((commits.trim(), changed.trim()) == ("1", "own"))
    }

    /// How many commits a branch of the repository that keeps them has beyond the first.
    pub fn commits(&self, branch: &str) -> anyhow::Result<usize> {
        let count = git(&self.setup.workspace.join(KEPT), &["rev-list", "--count", &format!("main..{branch}")])?;
        count.trim().parse().with_context(|| format!("rev-list printed {count:?}"))
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn git(repository: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let who = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgSign=false"];
    let output = Command::new("git").args(who).args(arguments).current_dir(repository).output().context("git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "git {arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
