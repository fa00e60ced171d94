//! Which folders a request may choose.

use switchboard_a2a::TaskState;
use switchboard_cli_agents::{Settings, Worker};

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;

/// Makes what git keeps of a repository.
fn git_folder(fixture: &Fixture, folder: &str) {
    let folder = fixture.path().join(folder);
    for part in ["objects", "refs", "hooks"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::write(folder.join("HEAD"), "").unwrap();
}

fn folders(fixture: &Fixture, folders: &[&str]) {
    folders.iter().for_each(|folder| std::fs::create_dir_all(fixture.path().join(folder)).unwrap());
}

fn link(fixture: &Fixture, to: &str, name: &str) {
    std::os::unix::fs::symlink(to, fixture.path().join(name)).unwrap();
}

/// An agent that may work below these folders, and says in which it does.
fn harness(fixture: &Fixture, roots: &[&str]) -> Harness {
    let program = r#"hear; tell '{"kind":"init","session":"s"}'; finish "$PWD""#;
    let worker = Worker::new(Resuming::new(fixture.asking(program)));
    let repos = roots.iter().map(|root| fixture.path().join(root)).collect();
    Harness::open(fixture, Settings { repos, ..Settings::new("coder", worker, fixture.work()) })
}

/// Where a request works: a folder of the fixture, or the problem of the refusal.
fn chosen(fixture: &Fixture, harness: &Harness, message: Said) -> String {
    let task = harness.run(harness.send(message));
    let text = status_text(&task);
    if task.status.state == TaskState::Completed {
        let real = fixture.path().canonicalize().unwrap();
        return text.strip_prefix(real.to_str().unwrap()).unwrap().trim_start_matches('/').to_owned();
    }
    for (problem, short) in [
        ("is not a folder within those", "not allowed"),
        ("is where git keeps a repository", "of git"),
        ("may hold some; name a repository within it", "above"),
    ] {
        if text.contains(problem) {
            return short.to_owned();
        }
    }
    text
}

fn repo(name: &str) -> Said {
    Said::from("go").with("repo", name)
}

#[test]
fn a_request_stays_within_the_allowed_folders_whatever_it_writes() {
    let fixture = Fixture::new();
    folders(&fixture, &["root/app/src", "root-beside", "outside"]);
    std::fs::write(fixture.path().join("root/file"), "").unwrap();
    link(&fixture, "../outside", "root/link");
    link(&fixture, "app", "root/same");
    let harness = harness(&fixture, &["root"]);
    let absolute = fixture.path().join("root/app/src");
    for (name, expected) in [
        ("app", "root/app"),
        ("same/src", "root/app/src"),
        (absolute.to_str().unwrap(), "root/app/src"),
        ("link", "not allowed"),
        ("..", "not allowed"),
        ("app/../..", "not allowed"),
        ("/", "not allowed"),
        ("/etc", "not allowed"),
        ("missing", "not allowed"),
        ("file", "not allowed"),
        ("app\0", "not allowed"),
        ("../root-beside", "not allowed"),
    ] {
        assert_eq!(chosen(&fixture, &harness, repo(name)), expected, "{name:?}");
    }
}

#[test]
fn a_request_chooses_nothing_of_git_and_nothing_above_repositories() {
    let fixture = Fixture::new();
    for git in ["r/a/.git", "r/group/b/.git", "r/bare.git", "r/elsewhere/store"] {
        git_folder(&fixture, git);
    }
    folders(
        &fixture,
        &["r/a/src", "r/plain/x/.git", "r/odd/.GIT/x", "r/bare.git/main/src", "r/copies/one", "r/deep/group/inner"],
    );
    git_folder(&fixture, "r/deep/group/inner/app/.git");
    // A worktree of a bare repository, and one of another.
    std::fs::write(fixture.path().join("r/bare.git/main/.git"), "").unwrap();
    std::fs::write(fixture.path().join("r/copies/one/.git"), "").unwrap();
    link(&fixture, "a/.git/hooks", "r/link");
    link(&fixture, "../group", "r/plain/link");
    // Too many folders to be looked through.
    for number in 0..2_000 {
        folders(&fixture, &[&format!("r/large/{number}")]);
    }
    let all = harness(&fixture, &["r"]);
    for (name, expected) in [
        ("a", "r/a"),
        ("a/src", "r/a/src"),
        ("group/b", "r/group/b"),
        ("plain", "r/plain"),
        ("plain/x", "r/plain/x"),
        ("copies/one", "r/copies/one"),
        ("bare.git/main/src", "r/bare.git/main/src"),
        ("large/7", "r/large/7"),
        ("a/.git", "of git"),
        ("a/.git/hooks", "of git"),
        ("a/src/../.git", "of git"),
        ("link", "of git"),
        ("bare.git", "of git"),
        ("bare.git/hooks", "of git"),
        ("elsewhere/store/refs", "of git"),
        ("odd/.GIT/x", "of git"),
        (".", "above"),
        ("a/..", "above"),
        ("group", "above"),
        ("deep", "above"),
        ("copies", "above"),
        ("elsewhere", "above"),
        ("large", "above"),
    ] {
        assert_eq!(chosen(&fixture, &all, repo(name)), expected, "{name:?}");
    }
    all.kill();
    for (roots, expected) in [(&["r/a"][..], "r/a"), (&["r/a/src"], "r/a/src"), (&["r", "r/a"], "r/a")] {
        let one = harness(&fixture, roots);
        assert_eq!(chosen(&fixture, &one, repo(".")), expected, "{roots:?}");
        one.kill();
    }
}

#[test]
fn repositories_that_a_conversation_has_made_do_not_shut_it_out() {
    let fixture = Fixture::new();
    folders(&fixture, &["r/plain", "r/other"]);
    let harness = harness(&fixture, &["r"]);
    let within_c = |name: &str| within("c", "go").with("repo", name);
    assert_eq!(chosen(&fixture, &harness, within_c("plain")), "r/plain");
    assert_eq!(chosen(&fixture, &harness, within_c(".")), "above", "all of the root, although it holds no repository");
    assert_eq!(chosen(&fixture, &harness, within("d", "go").with("repo", "other")), "r/other");
    git_folder(&fixture, "r/plain/made/.git");
    assert_eq!(chosen(&fixture, &harness, within_c("plain")), "r/plain");
    assert_eq!(chosen(&fixture, &harness, repo("plain")), "above", "another conversation");
    let elsewhere = within("d", "go").with("repo", "plain");
    assert_eq!(chosen(&fixture, &harness, elsewhere), "above", "one that has worked elsewhere");
}

#[test]
fn a_folder_that_was_replaced_while_its_task_waited_is_not_worked_in() {
    let fixture = Fixture::new();
    folders(&fixture, &["r/app", "r/other"]);
    let repos = vec![fixture.path().join("r")];
    let settings = Settings { repos, ..fixture.settings("hear; text on; await end; finish ok") };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let first = harness.start(repo("app")).await;
        harness.until(&first, |task| text(task, "assistant-response").is_some()).await;
        let second = harness.start(repo("app")).await;
        harness.until(&second, |task| status_text(task).starts_with("Waiting: ")).await;
        std::fs::remove_dir(fixture.path().join("r/app")).unwrap();
        link(&fixture, "other", "r/app");
        fixture.allow("end");
        let expected = "the folder to work in was moved while the task waited: send the message again";
        assert_eq!(ending(&harness.ended(&second).await), (TaskState::Rejected, expected.to_owned()));
    });
}

#[test]
fn without_allowed_folders_there_is_no_choice_and_a_missing_folder_is_named() {
    let fixture = Fixture::new();
    let harness = harness(&fixture, &[]);
    let expected = "metadata.repo: this agent does not let requests choose a repository; leave it out";
    assert_eq!(chosen(&fixture, &harness, repo(".")), expected);
    std::fs::remove_dir(fixture.work()).unwrap();
    let problem = chosen(&fixture, &harness, Said::from("go"));
    assert!(problem.contains("work: No such file"), "{problem}");
}
