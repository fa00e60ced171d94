//! What is checked with each agent, in the ways it can be run.

mod approvals;
mod cancel;
mod codex;
mod conversation;
mod cursor;
mod delegation;
mod failures;
mod hostile;
mod kills;
mod root;
mod rules;

use coding_agents_tests::{Agent, Installed, User};
use serde_json::json;
use switchboard_a2a::{Task, TaskState};
use url::Url;

use crate::caller::{Caller, answer};
use crate::fixture::{Step, Unusual, within};
use crate::run::Run;
use crate::subject::{Subject, claude};

/// A tool that takes for ever the first time it is used, and no time after that.
const LONG_TOOL: &str = "[[bash touch started; test -e again || { touch again; sleep 3600; }]]";

/// Adds all checks to a run.
pub(crate) fn plan<'a>(run: &mut Run<'a>, installed: &'a Installed, subjects: &'a [Subject]) -> anyhow::Result<()> {
    for subject in subjects {
        let name = |what: &str| format!("{}-{what}", subject.name);
        let usual = || Unusual::default();
        run.series(installed, subject, series(subject));
        let no_shell = subject.keys["cli"].as_str().filter(|_| subject.asks).and_then(rules::no_shell);
        if let Some(keys) = no_shell {
            let ruled = Unusual { keys, ..usual() };
            run.check(name("denied-by-name"), within(installed, subject, ruled, rules::denied_by_name));
        }
        let is_acp = subject.keys["cli"] == "acp";
        if subject.asks && !is_acp && subject.agent != Agent::Gemini {
            let pair = delegation::pair(subject.keys["cli"].as_str().unwrap_or_default())?;
            run.check(name("delegation"), within(installed, subject, pair, delegation::within_limits));
        }
        if matches!(subject.agent, Agent::Codex | Agent::Opencode) && !is_acp {
            let many = Unusual { keys: json!({ "maxParallel": 4, "repoLock": false }), ..usual() };
            run.check(name("first-at-once"), within(installed, subject, many, conversation::first_at_once));
        }
        if subject.agent == Agent::Codex {
            run.check(name("hostile-repository"), within(installed, subject, usual(), codex::hostile_repository));
            if subject.asks {
                let permitted = |permissions| Unusual { keys: json!({ "permissions": permissions }), ..usual() };
                run.check(name("reading"), within(installed, subject, usual(), codex::reading));
                let denying = permitted(json!({ "deny": ["shell"] }));
                run.check(name("denied-command"), within(installed, subject, denying, codex::denied_command));
                let denying = permitted(json!({ "deny": ["mcp__notes__add"] }));
                run.check(name("servers"), within(installed, subject, denying, codex::servers));
                let looking = permitted(json!({ "default": "deny" }));
                run.check(name("looking"), within(installed, subject, looking, codex::looking));
            }
        }
        if subject.asks && !is_acp {
            if subject.agent != Agent::Codex {
                run.check(name("hostile"), within(installed, subject, usual(), hostile::does_not_count));
            }
            if subject.agent == Agent::Opencode {
                let check = within(installed, subject, usual(), hostile::plugins_are_refused);
                run.check(name("hostile-plugins"), check);
            }
            // On a busy machine it takes long until the model is asked.
            let silent = Unusual { keys: json!({ "idle": "20s" }), ..usual() };
            run.wait(name("hang"), within(installed, subject, silent, failures::hangs));
        }
        if subject.agent == Agent::Gemini && !is_acp {
            run.check(name("transcript"), within(installed, subject, usual(), conversation::transcript));
        }
        if subject.agent == Agent::Gemini && subject.asks && !is_acp {
            run.wait(name("resumed-later"), within(installed, subject, usual(), conversation::resumed_later));
        }
        let keys = json!({ "idle": "6s", "timeout": "12s" });
        let down = Unusual { endpoint: Url::parse("http://127.0.0.1:9").ok(), keys, ..usual() };
        run.wait(name("endpoint-down"), within(installed, subject, down, failures::endpoint_down));
    }
    Ok(())
}

/// The checks of every subject that one server can do one after the other. What kills something comes last.
fn series(subject: &Subject) -> Vec<(String, Step)> {
    let mut steps: Vec<(&str, Step)> = vec![
        ("conversation", |fixture| Box::pin(conversation::turn_and_follow_up(fixture))),
        ("streaming", |fixture| Box::pin(conversation::streaming(fixture))),
        ("mention", |fixture| Box::pin(rules::mention(fixture))),
        ("refused", |fixture| Box::pin(failures::refused(fixture))),
    ];
    if subject.asks {
        steps.push(("allowed", |fixture| Box::pin(approvals::allowed(fixture))));
        steps.push(("denied", |fixture| Box::pin(approvals::denied(fixture))));
        steps.push(("retried", |fixture| Box::pin(failures::retried(fixture))));
    } else {
        steps.push(("unasked", |fixture| Box::pin(approvals::unasked(fixture))));
    }
    steps.push(("cancel", |fixture| Box::pin(cancel::cancel(fixture))));
    steps.push(("child-killed", |fixture| Box::pin(kills::child(fixture))));
    if subject.asks {
        steps.push(("server-killed", |fixture| Box::pin(kills::server_that_asks(fixture))));
    } else {
        steps.push(("server-killed", |fixture| Box::pin(kills::server_at_work(fixture))));
    }
    steps.into_iter().map(|(what, step)| (format!("{}-{what}", subject.name), step)).collect()
}

/// Adds the checks that concern only one agent.
pub(crate) fn plan_single<'a>(run: &mut Run<'a>, installed: &'a Installed, singles: &'a Singles) -> anyhow::Result<()> {
    let Singles { cursor, unasked, denying, trusting } = singles;
    for subject in denying {
        let name = |what: &str| format!("{}-{what}", subject.name);
        run.check(name("refused"), within(installed, subject, Unusual::default(), approvals::refused));
        run.check(name("hostile"), within(installed, subject, Unusual::default(), hostile::does_not_count));
        if subject.agent == Agent::Gemini {
            let check = within(installed, subject, Unusual::default(), hostile::variables_are_refused);
            run.check(name("hostile-variables"), check);
        }
        if subject.agent == Agent::Opencode {
            let check = within(installed, subject, Unusual::default(), hostile::plugins_are_refused);
            run.check(name("hostile-plugins"), check);
        }
    }
    for subject in trusting {
        let check = within(installed, subject, Unusual::default(), hostile::counts_where_trusted);
        run.check(format!("{}-hostile", subject.name), check);
    }
    let check = within(installed, cursor, Unusual::default(), cursor::conversation);
    run.check("cursor-conversation".to_owned(), check);
    // An account other than root is refused nothing, and cannot start programs as another one.
    if let Some(user) = User::instead_of_root()? {
        run.check("claude-root-refused".to_owned(), within(installed, unasked, Unusual::default(), root::refused));
        let unusual = Unusual { user: Some(user), keys: json!({ "user": User::NAME }), ..Unusual::default() };
        run.check("claude-as-other-user".to_owned(), within(installed, unasked, unusual, root::as_other_user));
    }
    Ok(())
}

/// What only single checks are about.
pub(crate) struct Singles {
    cursor: Subject,
    /// Claude Code without permissions.
    unasked: Subject,
    denying: Vec<Subject>,
    trusting: Vec<Subject>,
}

impl Singles {
    pub(crate) fn new() -> Self {
        let cursor = json!({ "cli": "cursor", "program": "./cursor-agent", "permissions": { "default": "allow" } });
        let unasked = json!({
            "cli": "claude-code", "permissions": { "default": "allow" },
            "args": ["--permission-mode", "bypassPermissions"],
        });
        Self {
            cursor: Subject { keys: cursor, ..claude() },
            unasked: Subject { keys: unasked, ..claude() },
            denying: Subject::denying(),
            trusting: Subject::trusting(),
        }
    }
}

/// Says yes to whatever a task asks.
async fn say_yes(caller: &Caller, mut task: Task) -> anyhow::Result<Task> {
    while task.status.state == TaskState::InputRequired {
        task = caller.send(answer(&task, "y")).await?;
    }
    Ok(task)
}
