//! Copies and repositories whose settings name commands for git to run. The program itself may run what it likes; what the
//! server does afterwards with its worktree must not run any of it.

use switchboard_a2a::{Task, TaskState};
use switchboard_cli_agents::WorktreePolicy;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::worktrees::{await_removal, branch, branches, in_worktrees};

/// Settings with all commands that git may run while files are added, committed, compared and checked out. Each says on
/// which way it was run.
const SETTINGS: &str = r#"
# settings FILE: adds them.
settings() {
    ran="$NOTES/ran"
    mkdir -p "$NOTES/hooks"
    for hook in post-checkout pre-commit post-commit commit-msg prepare-commit-msg post-index-change reference-transaction; do
        printf '#!/bin/sh\necho hook %s >> "%s"\n' $hook "$ran" > "$NOTES/hooks/$hook"
        chmod +x "$NOTES/hooks/$hook"
    done
    cat >> "$1" <<END
[core]
    fsmonitor = "echo fsmonitor >> '$ran'; true"
    hooksPath = $NOTES/hooks
    pager = "echo pager >> '$ran'; cat"
    editor = "echo editor >> '$ran'; true"
    attributesFile = $NOTES/attributes
    sshCommand = "echo ssh >> '$ran'; true"
[filter "evil"]
    clean = "echo clean >> '$ran'; cat"
    smudge = "echo smudge >> '$ran'; cat"
    required = true
[filter "process"]
    process = "echo process >> '$ran'; cat"
[diff]
    external = "echo external >> '$ran'; true"
[diff "evil"]
    command = "echo command >> '$ran'; true"
    textconv = "echo textconv >> '$ran'; cat"
[commit]
    gpgSign = true
[gpg]
    program = "echo gpg >> '$ran'; true"
[include]
    path = $NOTES/included
END
    printf '[filter "included"]\n    clean = "echo included >> %s; cat"\n' "'$ran'" > "$NOTES/included"
    printf '*.txt filter=evil\n' > "$NOTES/attributes"
}
attributes() { printf '%s\n' '* filter=evil diff=evil' '*.inc filter=included' '*.pro filter=process' > "$1"; }
"#;

/// Runs two tasks, of which the first leaves something hostile; says what the first has told.
fn tasks(fixture: &Fixture, policy: WorktreePolicy, hostile: &str) -> Task {
    let program = format!(
        r#"{SETTINGS}
        tell '{{"kind":"init","session":"s"}}'
        if [ ! -e "$NOTES/second" ]; then
            echo changed >> readme; echo a > a.txt; echo b > b.inc; echo c > c.pro
            {hostile}
        fi
        finish ok"#
    );
    let harness = Harness::open(fixture, in_worktrees(fixture, policy, &program));
    harness.run(async {
        let first = harness.send(within("c", "one")).await;
        assert_eq!(first.status.state, TaskState::Completed, "{}", status_text(&first));
        fixture.allow("second");
        // What the first has left in the repository is there for worktrees of others, too.
        for context in ["c", "d"] {
            let task = harness.send(within(context, "two")).await;
            assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        }
        await_removal(&harness, fixture).await;
        assert_eq!(fixture.noted("ran"), None, "git ran what a worktree named");
        first
    })
}

fn has_all(task: &Task) {
    let patch = text(task, "diff").unwrap();
    for line in ["+changed\n", "+a\n", "+b\n", "+c\n"] {
        assert!(patch.contains(line), "no {line:?} in {patch}");
    }
}

#[test]
fn settings_of_the_repository_run_nothing() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let hostile = r#"attributes .gitattributes; settings "$(git rev-parse --git-common-dir)/config""#;
        has_all(&tasks(&fixture, policy, hostile));
    }
}

#[test]
fn settings_of_the_worktree_alone_run_nothing() {
    let fixture = Fixture::new();
    fixture.repository();
    let hostile = r#"attributes .gitattributes; git config extensions.worktreeConfig true
        settings "$(git rev-parse --git-dir)/config.worktree""#;
    has_all(&tasks(&fixture, WorktreePolicy::Keep, hostile));
}

#[test]
fn a_worktree_that_points_to_another_repository_is_still_the_worktree() {
    let fixture = Fixture::new();
    fixture.repository();
    let hostile = r#"attributes .gitattributes; git init --quiet "$NOTES/other"; settings "$NOTES/other/.git/config"
        echo "gitdir: $NOTES/other/.git" > .git"#;
    let task = tasks(&fixture, WorktreePolicy::Keep, hostile);
    has_all(&task);
    assert_eq!(fixture.git(&["show", &format!("{}:a.txt", branch(&task))]), "a");
}

#[test]
fn a_worktree_with_a_repository_of_its_own_is_still_the_worktree() {
    let fixture = Fixture::new();
    fixture.repository();
    let hostile = r#"attributes .gitattributes; rm .git; git init --quiet; settings .git/config"#;
    has_all(&tasks(&fixture, WorktreePolicy::Keep, hostile));
}

#[test]
fn repositories_within_a_worktree_run_nothing() {
    let fixture = Fixture::new();
    fixture.repository();
    // Known to git already, so that it would look for changes there.
    let within = r#"git init --quiet within; git init --quiet empty
        (cd within; echo 1 > one; git add one; git -c user.name=O -c user.email=o@localhost commit --quiet -m own)
        git add within; attributes within/.git/info/attributes; settings within/.git/config
        sleep 1.1; echo 2 > within/one"#;
    let task = tasks(&fixture, WorktreePolicy::Keep, within);
    has_all(&task);
    assert!(text(&task, "diff").unwrap().contains("+Subproject commit "));
    assert_eq!(branches(&fixture), [branch(&task)]);
}

#[test]
fn what_git_itself_left_broken_or_locked_is_no_obstacle() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"
        own=$(git rev-parse --git-dir); echo a > a.txt
        case "$said" in
            locked) touch "$own/index.lock";;
            nonsense) echo nonsense > "$own/index";;
            pipe) rm "$own/index"; mkfifo "$own/index";;
            orphan) git checkout --quiet --orphan nothing;;
            gone) rm -r "$own";;
            closed) mkdir closed; echo x > closed/x; chmod 000 closed/x; chmod 500 closed;;
        esac
        finish ok"#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    harness.run(async {
        let mut ids = Vec::new();
        for broken in ["locked", "nonsense", "pipe", "orphan", "gone", "closed"] {
            ids.push((broken, harness.start(broken).await));
        }
        for (broken, id) in &ids {
            let task = harness.ended(id).await;
            assert_eq!(task.status.state, TaskState::Completed, "{broken}: {}", status_text(&task));
            assert!(text(&task, "diff").is_some_and(|patch| patch.contains("+a\n")), "{broken}: {task:?}");
            assert_eq!(fixture.git(&["show", &format!("{}:a.txt", branch(&task))]), "a", "{broken}");
        }
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn what_the_repository_says_about_names_and_ends_of_lines_counts() {
    let fixture = Fixture::new();
    // It may name its objects in another way, too.
    fixture.git(&["init", "--quiet", "--object-format=sha256"]);
    fixture.repository();
    fixture.git(&["config", "core.autocrlf", "input"]);
    std::fs::write(fixture.work().join(".git/info/exclude"), "ignored\n").unwrap();
    let hostile = r"echo x > ignored; echo y > forced; printf 'one\r\n' > ends; echo forced >> .gitignore
        git add --force forced";
    let task = tasks(&fixture, WorktreePolicy::Keep, hostile);
    let files: serde_json::Value = data(&task, "result")["filesChanged"].clone();
    assert_eq!(files, serde_json::json!([".gitignore", "a.txt", "b.inc", "c.pro", "ends", "forced", "readme"]));
    let blob = fixture.git(&["show", &format!("{}:ends", branch(&task))]);
    assert_eq!(blob, "one");
}

#[test]
fn settings_without_a_value_are_no_obstacle() {
    let fixture = Fixture::new();
    fixture.repository();
    let config = fixture.work().join(".git/config");
    let settings = std::fs::read_to_string(&config).unwrap() + "[core]\n\tsymlinks\n\teol = lf\n\tautocrlf = input\n";
    std::fs::write(&config, settings).unwrap();
    let program = "printf 'two\\r\\n' >> readme; finish ok";
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    let task = harness.run(harness.send("go"));
    assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
    assert_eq!(fixture.git(&["show", &format!("{}:readme", branch(&task))]), "one\ntwo", "the rest of them count");
}
