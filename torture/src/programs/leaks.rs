//! What is left of tasks that have ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::HANG_GUARD;
use crate::calls;
use crate::http::Connection;
use crate::programs::Outcome;
use crate::programs::census::{self, Process};
use crate::programs::workspace::{KEPT, Workspace};
use crate::server::Server;

const PAUSE: Duration = Duration::from_millis(50);
/// Connections and files of the store come and go.
const MORE_FILES: usize = 4;
/// Memory may grow by a half, or by this many KiB: what the allocator keeps goes up and down by a quarter, and what
/// leaks grows with every round.
const MORE_MEMORY: u64 = 32 << 10;

/// What a server uses while it has nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    files: usize,
    memory: u64,
}

impl Level {
    /// What it uses now. Connections of callers that have gone are closed a moment later, so the least of some looks
    /// counts.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let files = (0..20).map(|_| {
            std::thread::sleep(PAUSE);
            census::open_files(server.pid())
        });
        Self { files: files.min().unwrap_or_default(), memory: census::memory(server.pid()) }
    }
}

/// What is left, in words.
fn left(workspace: &Workspace, server: &Server) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    let shown = |process: &Process| format!("{} ({})", process.pid, process.command.trim());
    let marker = format!("{}.", workspace.ledger_name()?);
    left.extend(census::marked(&marker).iter().map(|process| format!("process {}", shown(process))));
    let pid = i32::try_from(server.pid())?;
    // Its guard stays as long as the server does.
    let is_left = |process: &Process| process.parent == pid && !process.command.contains("exec-child guard ");
    let children = census::all().into_iter().filter(is_left);
    left.extend(children.map(|process| format!("child {}", shown(&process))));
    left.extend(workspace.ledger().iter().map(|file| format!("entry {}", file.display())));
    left.extend(workspace.copies().iter().map(|copy| format!("copy {}", copy.display())));
    for (name, known, branches) in workspace.repositories()? {
        if known > 0 {
            left.push(format!("{known} copies that git knows of in {name}"));
        }
        left.extend(branches.iter().filter(|_| name != KEPT).map(|branch| format!("branch of {name} {branch}")));
    }
    Ok(left)
}

/// Waits until nothing is left, or never will be gone: what programs start outlives the hang guard.
pub fn wait_until_quiet(workspace: &Workspace, server: &Server) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < HANG_GUARD && !left(workspace, server)?.is_empty() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Ends tasks that their callers have never heard of: the server was killed before it could tell them.
pub fn end_all(server: &Server) -> anyhow::Result<()> {
    let mut connection = Connection::open(server.address)?;
    for (task, _) in calls::list(&mut connection, &json!({}))? {
        if !task.is_terminal() {
            // It may have ended meanwhile.
            let _ = calls::cancel(&mut connection, "/a2a", &task.id)?;
        }
    }
    Ok(())
}

/// Looks at everything that a task could leave behind.
pub fn check(workspace: &Workspace, server: &Server, levels: &[Level], outcome: &mut Outcome) -> anyhow::Result<()> {
    let tasks = calls::list(&mut Connection::open(server.address)?, &json!({}))?;
    let open = tasks.iter().filter(|(task, _)| !task.is_terminal());
    outcome.problems.extend(open.map(|(task, text)| format!("task {} ({text}) is {}", task.id, task.state)));
    outcome.checks.push(format!("{} tasks, every one has ended", tasks.len()));

    let left = left(workspace, server)?;
    outcome.problems.extend(left.into_iter().map(|left| format!("left behind: {left}")));
    outcome.checks.push("no process, no child, no entry in the ledger, no copy, no branch of a removed one".to_owned());

    let texts: HashMap<&str, &str> = tasks.iter().map(|(task, text)| (task.id.as_str(), text.as_str())).collect();
    let kept = workspace.repositories()?.into_iter().find(|(name, ..)| *name == KEPT);
    let branches = kept.map(|(.., branches)| branches).unwrap_or_default();
    for branch in &branches {
        let text = branch.strip_prefix("switchboard/").and_then(|id| texts.get(id));
        if !text.is_some_and(|text| text.contains("changes")) || workspace.commits(branch)? == 0 {
            outcome.problems.push(format!("branch {branch} is kept for a task that has changed nothing: {text:?}"));
        }
    }
    outcome.checks.push(format!("{} branches kept, each of a task that has changed something", branches.len()));

    if !workspace.is_own_untouched()? {
        outcome.problems.push("the repository around the workspace was changed".to_owned());
    }
    outcome.checks.push("the repository around the workspace is as it was".to_owned());
    check_levels(levels, outcome);
    let log = std::fs::read_to_string(&workspace.setup.log)?;
    let bad = log.lines().filter(|line| line.contains("panicked") || line.contains("ERROR"));
    outcome.problems.extend(bad.map(|line| format!("the server's log: {line}")));
    outcome.checks.push("no error in the server's log".to_owned());
    Ok(())
}

/// Whether there is more memory than after the warm-up, by more than may be.
#[must_use]
pub fn has_grown(levels: &[Level]) -> bool {
    let (Some(before), Some(after)) = (levels.first(), levels.last()) else { return false };
    after.memory > (before.memory * 3 / 2).max(before.memory + MORE_MEMORY)
}

/// Files and memory stay what they were after the warm-up.
fn check_levels(levels: &[Level], outcome: &mut Outcome) {
    let (Some(before), Some(after)) = (levels.first(), levels.last()) else { return };
    if after.files > before.files + MORE_FILES {
        outcome.problems.push(format!("{} open files grew to {}", before.files, after.files));
    }
    if has_grown(levels) {
        outcome.problems.push(format!("{} KiB of memory grew to {}", before.memory, after.memory));
    }
    let all =
        |value: fn(&Level) -> u64| levels.iter().map(|level| value(level).to_string()).collect::<Vec<_>>().join(", ");
    outcome.checks.push(format!("open files after the warm-up and on: {}", all(|level| level.files as u64)));
    outcome.checks.push(format!("memory after the warm-up and on, in MiB: {}", all(|level| level.memory >> 10)));
}
