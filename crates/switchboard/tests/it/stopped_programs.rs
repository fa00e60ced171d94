//! A server that is told to stop while programs of command-line agents are at work: what is left of them, and what the next
//! server makes of their tasks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::server::Server;

/// Notes who it is, begins, and never ends by itself unless it is taken up again.
const PROGRAM: &str = r#"
setsid sleep 600 </dev/null >/dev/null 2>&1 &
echo "$$ $!" >> "${0%/*}/pids"
[ "$1" = resume ] || echo half > half
printf '{"type":"text","text":"I begin."}\n{"kind":"text","text":"I begin."}\n'
if [ "$1" = resume ]; then
    cat half; echo more >> half
    printf '{"type":"done"}\n'; exit 0
fi
while :; do sleep 0.05; done
"#;

const RESUMING: &str = r#"
name: resuming
binary: { names: [sh] }
start: { args: [PROGRAM, new, "--session={session}", "--message={prompt}"] }
resume: { args: [PROGRAM, resume, "--session={session}", "--message={prompt}"] }
output: jsonl
rules:
  - { when: { type: text }, text: text }
  - { when: { type: done }, done: {} }
"#;

/// Agents: whether their program can be taken up again, and whether they work in copies.
const AGENTS: [(&str, bool, &str); 6] = [
    ("plain", false, "off"),
    ("resumed", true, "off"),
    ("kept", false, "keep"),
    ("removed", false, "remove"),
    ("resumed-in-copy", true, "keep"),
    (DISMISSED, false, "keep"),
];

/// The next server has this one no more.
const DISMISSED: &str = "dismissed";

/// Longer than all of it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn workspace() -> Workspace {
    let path = std::env::var("PATH").unwrap();
    let workspace = Workspace::new().file("program.sh", PROGRAM).variable("PATH", &path);
    let program = workspace.path().join("program.sh").display().to_string();
    let mut agents = "agents:\n".to_owned();
    for (name, resumes, worktree) in AGENTS {
        let kind = match resumes {
            true => "adapter: resuming.yaml, permissions: { default: allow }".to_owned(),
            false => format!("command: [sh, {program:?}], output: jsonl"),
        };
        agents
            .push_str(&format!("  - {{ name: {name}, cli: generic, {kind}, cwd: ./{name}, worktree: {worktree} }}\n"));
        let repository = workspace.path().join(name);
        std::fs::create_dir(&repository).unwrap();
        git(&repository, &["init", "--quiet", "--initial-branch=main"]);
        git(&repository, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    }
    let workspace = workspace.file("agents.yaml", agents).file("resuming.yaml", RESUMING.replace("PROGRAM", &program));
    workspace.variable("SWITCHBOARD_TASKS_DRAIN", "200ms").variable("SWITCHBOARD_STORE_DURABILITY", "process")
}

fn git(repository: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgSign=false"];
    let output = Command::new("git").args(who).args(args).current_dir(repository).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Waits until something is so.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn task(server: &Server, agent: &str, id: &str) -> Value {
    server.get(&format!("/a2a/{agent}/tasks/{id}"), "").json()
}

/// Whether any program, or anything that one has started, is there and not only waiting to be reaped.
fn lives(workspace: &Workspace) -> bool {
    let pids = std::fs::read_to_string(workspace.path().join("pids")).unwrap();
    pids.split_whitespace().any(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
    })
}

/// What is left of an agent's copies.
fn copies(workspace: &Workspace, agent: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(workspace.path().join(".switchboard/worktrees").join(agent));
    files.into_iter().flatten().flatten().map(|file| file.path()).collect()
}

/// A task has gone on to its end, or has failed for the right reason.
fn has_ended_well(server: &Server, agent: &str, id: &str, resumes: bool) {
    let ended = wait_for(&format!("{agent} does not end"), || {
        let task = task(server, agent, id);
        let state = task["status"]["state"].as_str()?;
        ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state).then_some(task)
    });
    let expected = if resumes { "TASK_STATE_COMPLETED" } else { "TASK_STATE_FAILED" };
    assert_eq!(ended["status"]["state"], expected, "{agent}: {ended}");
    if !resumes {
        assert_eq!(ended["metadata"]["switchboard/reason"], "interrupted", "{agent}: {ended}");
    }
}

#[test]
fn programs_end_with_their_server_and_their_tasks_are_settled_by_the_next() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let mut ids = Vec::new();
    for (agent, ..) in AGENTS {
        let body = json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] },
            "configuration": { "returnImmediately": true },
        });
        let sent = server.post(&format!("/a2a/{agent}/message:send"), "", &body.to_string()).json();
        ids.push(sent["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned());
    }
    for ((agent, ..), id) in AGENTS.iter().zip(&ids) {
        wait_for(&format!("{agent} does not begin"), || {
            task(&server, agent, id).to_string().contains("I begin.").then_some(())
        });
    }
    let all = || std::fs::read_to_string(workspace.path().join("pids")).unwrap().lines().count();
    assert_eq!(all(), AGENTS.len());
    server.signal("TERM");
    let (said, status) = server.ended();
    assert_eq!(status.code(), Some(0), "{said:?}");
    assert!(!lives(&workspace), "a program has outlived its server");
    for (agent, _, worktree) in AGENTS {
        assert_eq!(!copies(&workspace, agent).is_empty(), worktree != "off", "{agent}: the next server needs its copy");
        let branches = git(&workspace.path().join(agent), &["branch", "--list", "switchboard/*"]);
        assert_eq!(branches, "", "{agent}: what is kept is named at the end");
    }

    let agents = std::fs::read_to_string(workspace.path().join("agents.yaml")).unwrap();
    let rest: String =
        agents.lines().filter(|line| !line.contains(DISMISSED)).map(|line| format!("{line}\n")).collect();
    std::fs::write(workspace.path().join("agents.yaml"), rest).unwrap();
    let server = Server::start(&workspace);
    for ((agent, resumes, worktree), id) in AGENTS.iter().zip(&ids) {
        if *agent != DISMISSED {
            has_ended_well(&server, agent, id, *resumes);
        }
        wait_for(&format!("{agent}: {:?} is left", copies(&workspace, agent)), || {
            copies(&workspace, agent).is_empty().then_some(())
        });
        let repository = workspace.path().join(agent);
        assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1, "{agent}");
        let branch = format!("switchboard/{id}");
        let expected = if *worktree == "keep" { branch.as_str() } else { "" };
        assert_eq!(git(&repository, &["branch", "--list", "switchboard/*"]).trim(), expected, "{agent}");
        let half = if *resumes { "half\nmore" } else { "half" };
        match *worktree {
            "keep" => assert_eq!(git(&repository, &["show", &format!("{branch}:half")]), half, "{agent}"),
            "off" => assert_eq!(std::fs::read_to_string(repository.join("half")).unwrap().trim_end(), half, "{agent}"),
            _ => assert!(!repository.join("half").exists(), "{agent}"),
        }
    }
    server.signal("TERM");
    let (said, status) = server.ended();
    assert_eq!(status.code(), Some(0), "{said:?}");
    assert!(!lives(&workspace));
}
