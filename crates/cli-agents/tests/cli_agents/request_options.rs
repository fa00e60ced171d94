//! What a request may choose and what a child may see: folder, model, effort, environment, account, context.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use switchboard_a2a::TaskState;
use switchboard_cli_agents::adapters::{Declared, Permission, Permissions};
use switchboard_cli_agents::process::{MARKER, User};
use switchboard_cli_agents::{COMMON_VARIABLES, Settings, Worker, Workers};

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;

/// A program that is told of models and efforts, and notes its arguments.
fn told_of_models(fixture: &Fixture) -> Settings {
    let program = fixture.script("program", r#"printf '%s|' "$@" > "$NOTES/arguments"; tell '{"type":"end"}'"#);
    let yaml = format!(
        "name: x\nbinary: {{ names: [sh] }}\nstart:\n  args: ['{}', [--model, '{{model}}'], [--effort, '{{effort}}'], \
         '--prompt={{prompt}}']\npermissions: {{ allow: {{}} }}\noutput: jsonl\n\
         rules: [{{ when: {{ type: end }}, done: {{}} }}]\n",
        program[1]
    );
    let declared = Declared::parse(&yaml, "x.yaml").unwrap_or_else(|error| panic!("{error}"));
    let permissions = Permissions { default: Permission::Allow, ..Permissions::default() };
    let worker = Worker { model: Some("small".to_owned()), ..Worker::new(declared) };
    Settings { permissions, ..Settings::new("coder", worker, fixture.work()) }
}

#[test]
fn a_request_chooses_among_the_models_and_efforts_that_it_may() {
    let fixture = Fixture::new();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let mut settings = told_of_models(&fixture);
    if let Workers::One(worker) = &mut settings.workers {
        (worker.models, worker.efforts) = (names(&["small", "large"]), names(&["high"]));
    }
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let done = harness.send("go").await;
        assert_eq!(done.status.state, TaskState::Completed, "{}", status_text(&done));
        assert_eq!(fixture.noted("arguments").unwrap(), "--model|small|--prompt=go|");
        let wish = Said::from("go").with("model", "large").with("effort", "high");
        assert_eq!(harness.send(wish).await.status.state, TaskState::Completed);
        assert_eq!(fixture.noted("arguments").unwrap(), "--model|large|--effort|high|--prompt=go|");
        for (key, value, expected) in [
            ("model", serde_json::json!("huge"), "metadata.model: \"huge\" is not one of small, large"),
            ("effort", serde_json::json!("--x"), "metadata.effort: \"--x\" is not one of high"),
            ("model", serde_json::json!(7), "metadata.model must be a text in quotes, or left out"),
        ] {
            let task = harness.send(Said::from("go").with(key, value)).await;
            assert_eq!(ending(&task), (TaskState::Rejected, expected.to_owned()));
            assert_eq!(reason(&task), "rejected");
        }
    });
}

#[test]
fn a_conversation_keeps_the_model_that_its_program_is_told_only_once() {
    let fixture = Fixture::new();
    let program = fixture.script("program", r#"printf '%s|' "$@" > "$NOTES/arguments"; tell '{"type":"end"}'"#);
    let yaml = format!(
        "name: x\nbinary: {{ names: [sh] }}\n\
         start: {{ args: ['{0}', [--model, '{{model}}'], [--effort, '{{effort}}'], '--name={{session}}', '--p={{prompt}}'] }}\n\
         resume: {{ args: ['{0}', --resume, '--name={{session}}', '--p={{prompt}}'] }}\n\
         permissions: {{ allow: {{}} }}\noutput: jsonl\nrules: [{{ when: {{ type: end }}, done: {{}} }}]\n",
        program[1]
    );
    let declared = Declared::parse(&yaml, "x.yaml").unwrap_or_else(|error| panic!("{error}"));
    let permissions = Permissions { default: Permission::Allow, ..Permissions::default() };
    let [models, efforts] = [["small", "large"], ["low", "high"]].map(|names| names.map(str::to_owned).to_vec());
    let [model, effort] = ["small", "low"].map(|name| Some(name.to_owned()));
    let worker = Worker { model, models, effort, efforts, ..Worker::new(declared) };
    let settings = Settings { permissions, ..Settings::new("coder", worker, fixture.work()) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        for (context, text, model) in [("c", "one", "small"), ("c", "two", "small"), ("d", "one", "large")] {
            let wish = within(context, text);
            let wish = if model == "large" { wish.with("model", "large") } else { wish };
            let done = harness.send(wish).await;
            assert_eq!(done.status.state, TaskState::Completed, "{context} {text}: {}", status_text(&done));
            assert_eq!(data(&done, "agent-metadata")["model"], model);
        }
        // The one that it has may be named again; of another it cannot be told.
        for wish in [within("d", "two"), within("d", "three").with("model", "large")] {
            let done = harness.send(wish).await;
            assert_eq!(done.status.state, TaskState::Completed, "{}", status_text(&done));
            assert_eq!(data(&done, "agent-metadata")["model"], "large");
        }
        assert!(fixture.noted("arguments").unwrap().starts_with("--resume|--name="));
        for (key, value) in [("model", "small"), ("effort", "high")] {
            let task = harness.send(within("d", "four").with(key, value)).await;
            let expected = format!(
                "metadata.{key}: x keeps the {key} that a conversation began with: leave it out, or begin a new \
                 conversation"
            );
            assert_eq!(ending(&task), (TaskState::Rejected, expected));
        }
    });
}

#[test]
fn without_a_choice_every_wish_is_refused() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, told_of_models(&fixture));
    harness.run(async {
        for (key, what) in [("model", "the model"), ("effort", "the effort"), ("repo", "a repository")] {
            let task = harness.send(Said::from("go").with(key, "small")).await;
            let expected = format!("metadata.{key}: this agent does not let requests choose {what}; leave it out");
            assert_eq!(ending(&task), (TaskState::Rejected, expected));
        }
        assert_eq!(fixture.noted("arguments"), None);
    });
}

#[test]
fn a_request_chooses_a_repository_and_its_conversation_stays_there() {
    let fixture = Fixture::new();
    for folder in ["repos/app", "repos/lib", "secret"] {
        std::fs::create_dir_all(fixture.path().join(folder)).unwrap();
    }
    let program = r#"hear; tell '{"kind":"init","session":"s"}'; finish "$1 in $(basename "$PWD")""#;
    let worker = Worker::new(Resuming::new(fixture.asking(program)));
    let settings =
        Settings { repos: vec![fixture.path().join("repos")], ..Settings::new("coder", worker, fixture.work()) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        assert_eq!(status_text(&harness.send("go").await), "new in work");
        let first = harness.send(within("c", "go").with("repo", "app")).await;
        assert_eq!(status_text(&first), "new in app");
        assert_eq!(data(&first, "agent-metadata")["repo"], "app");
        assert_eq!(status_text(&harness.send(within("c", "on")).await), "resume in app");
        assert_eq!(status_text(&harness.send(within("c", "there").with("repo", "lib")).await), "new in lib");
        for outside in ["../secret", "/etc", "nowhere"] {
            let task = harness.send(Said::from("go").with("repo", outside)).await;
            let expected =
                format!("metadata.repo: {outside:?} is not a folder within those that this agent may work in");
            assert_eq!(ending(&task), (TaskState::Rejected, expected));
        }
    });
}

#[test]
fn a_conversation_whose_repository_is_another_one_now_begins_a_new_session_and_says_so() {
    let fixture = Fixture::new();
    for folder in ["repos/a", "repos/b"] {
        std::fs::create_dir_all(fixture.path().join(folder)).unwrap();
    }
    let link = fixture.path().join("repos/link");
    std::os::unix::fs::symlink("a", &link).unwrap();
    let program = r#"hear; tell '{"kind":"init","session":"s"}'; finish "$1 in $(basename "$PWD")""#;
    let settings = |repos: &[&str]| {
        let worker = Worker::new(Resuming::new(fixture.asking(program)));
        let repos = repos.iter().map(|repo| fixture.path().join(repo)).collect();
        Settings { repos, ..Settings::new("coder", worker, fixture.work()) }
    };
    let harness = Harness::open(&fixture, settings(&["repos"]));
    harness.run(async {
        let first = harness.send(within("c", "go").with("repo", "link")).await;
        assert_eq!(status_text(&first), "new in a");
        assert_eq!(data(&first, "agent-metadata")["repo"], "link", "callers are not told the server's own paths");
        assert_eq!(status_text(&harness.send(within("c", "on")).await), "resume in a");
        assert_eq!(status_text(&harness.send(within("c", "same").with("repo", "a")).await), "resume in a");
        assert_eq!(status_text(&harness.send(within("c", "same").with("repo", "link")).await), "resume in a");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("b", &link).unwrap();
        let moved = harness.send(within("c", "on")).await;
        assert_eq!(status_text(&moved), "new in b");
        let note = "\"link\" leads to another folder than before in this conversation; a new session begins there.";
        let told = harness.told(&moved.id).await;
        assert_eq!(told.iter().filter(|told| **told == format!("WORKING: {note}")).count(), 1, "{told:?}");
        assert_eq!(status_text(&harness.send(within("c", "on")).await), "resume in b");
    });
    harness.kill();
    for repos in [&[][..], &["notes"][..]] {
        let harness = Harness::open(&fixture, settings(repos));
        let refused = harness.run(harness.send(within("c", "on")));
        let expected = "this conversation worked in \"link\", which is not among the folders that this agent may work in \
                        any more; begin a new conversation";
        assert_eq!(ending(&refused), (TaskState::Rejected, expected.to_owned()));
        harness.kill();
    }
}

#[test]
fn a_turn_that_is_taken_up_again_takes_no_session_to_another_repository() {
    let fixture = Fixture::new();
    for folder in ["repos/a", "repos/b"] {
        std::fs::create_dir_all(fixture.path().join(folder)).unwrap();
    }
    let link = fixture.path().join("repos/link");
    std::os::unix::fs::symlink("a", &link).unwrap();
    let program = r#"hear; tell '{"kind":"init","session":"s"}'; text on; here=$(basename "$PWD")
        [ "$here" = a ] && await never; finish "$1 in $here""#;
    let settings = || {
        let worker = Worker::new(Resuming::new(fixture.asking(program)));
        Settings { repos: vec![fixture.path().join("repos")], ..Settings::new("coder", worker, fixture.work()) }
    };
    let harness = Harness::open(&fixture, settings());
    let id = crate::worktrees::at_work(&harness, Said::from("go").with("repo", "link"));
    harness.kill();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("b", &link).unwrap();
    let harness = Harness::open(&fixture, settings());
    assert_eq!(status_text(&harness.run(harness.ended(&id))), "new in b");
}

#[test]
fn a_request_gets_at_no_repository_from_within_git_or_from_above() {
    let fixture = Fixture::new();
    fixture.repository();
    let settings =
        Settings { repos: vec![fixture.path().to_owned()], ..fixture.settings("hear; note began yes; finish ok") };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        for (repo, problem) in [
            ("work/.git", "is where git keeps a repository; name the folder with the repository's files"),
            ("work/.git/hooks", "is where git keeps a repository; name the folder with the repository's files"),
            (".", "is no repository but may hold some; name a repository within it"),
        ] {
            let task = harness.send(Said::from("go").with("repo", repo)).await;
            assert_eq!(ending(&task), (TaskState::Rejected, format!("metadata.repo: {repo:?} {problem}")));
            assert_eq!(reason(&task), "rejected");
        }
        assert_eq!(fixture.noted("began"), None);
        assert_eq!(harness.send(Said::from("go").with("repo", "work")).await.status.state, TaskState::Completed);
    });
}

/// The names of the variables that the program was started with.
fn variables(fixture: &Fixture, env: Option<Vec<String>>) -> Vec<String> {
    let program = r#"hear; tr '\0' '\n' < /proc/$$/environ | cut -d= -f1 | sort > "$NOTES/variables"; finish ok"#;
    let harness = Harness::open(fixture, Settings { env, ..fixture.settings(program) });
    assert_eq!(harness.run(harness.send("go")).status.state, TaskState::Completed);
    fixture.noted("variables").unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_child_sees_the_named_variables_and_no_others() {
    // Cargo gives tests this one; it stands for a secret.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let named = ["PATH", "CARGO_MANIFEST_DIR", "NOT_SET_ANYWHERE"].map(str::to_owned);
    let seen = variables(&Fixture::new(), Some(named.to_vec()));
    assert_eq!(seen, ["CARGO_MANIFEST_DIR", "PATH", MARKER]);
    let usual = variables(&Fixture::new(), None);
    assert!(usual.contains(&"PATH".to_owned()) && usual.contains(&"HOME".to_owned()), "{usual:?}");
    let strange = usual.iter().find(|name| !COMMON_VARIABLES.contains(&name.as_str()) && *name != MARKER);
    assert_eq!(strange, None);
}

#[test]
fn a_child_runs_as_the_account_it_is_given() {
    let fixture = Fixture::new();
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    for folder in [fixture.path(), &fixture.notes(), &fixture.work()] {
        open(folder);
    }
    let nobody = User::find("nobody").unwrap();
    let home = nobody.home.clone();
    let settings = Settings {
        user: Some(nobody),
        ..fixture.settings(r#"hear; note account "$(id -u) $(id -g) $HOME $USER"; finish ok"#)
    };
    let harness = Harness::open(&fixture, settings);
    let task = harness.run(harness.send("go"));
    if rustix::process::geteuid().is_root() {
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        let account = fixture.noted("account").unwrap();
        assert!(account.ends_with(&format!(" {} nobody", home.display())), "{account}");
        assert!(!account.starts_with("0 "), "{account}");
    } else {
        assert_eq!(task.status.state, TaskState::Failed, "only root can become another account");
        assert!(status_text(&task).contains("root"), "{}", status_text(&task));
    }
}

#[test]
fn a_summary_of_the_repository_goes_before_the_first_prompt_where_that_is_wanted() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"hear; tell '{"kind":"init","session":"s"}'; finish ok"#;
    let worker = Worker::new(Resuming::new(fixture.asking(program)));
    let settings = Settings { context: true, ..Settings::new("coder", worker, fixture.work()) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        harness.send(within("c", "fix it")).await;
        harness.send(within("c", "go on")).await;
    });
    let heard = fixture.heard();
    let prompt: serde_json::Value = serde_json::from_str(&heard[0]).unwrap();
    let prompt = prompt["text"].as_str().unwrap();
    assert!(
        prompt.starts_with("<workspace-context>\n") && prompt.ends_with("</workspace-context>\n\nfix it"),
        "{prompt}"
    );
    assert!(prompt.contains("Files (1 of 1):\nreadme"), "{prompt}");
    assert_eq!(heard[1], r#"{"kind":"prompt","text":"go on"}"#, "the session knows it already");
}
