//! Codex, in the two ways it can be run without a terminal.
//!
//! `codex exec` says what it does line by line and cannot ask. `codex app-server` asks before every command, every
//! change of files and every tool of other servers, and waits for the answer. So `exec` is taken only where all is
//! allowed: it then works inside its sandbox, which may write to the working directory and has no network. Where all is
//! denied, the app server's sandbox lets it look and not touch.
//!
//! In both, permissions name its tools so:
//!
//! | name | what it is | who asks |
//! |---|---|---|
//! | `shell` | a command, also one outside the sandbox, since Codex's question does not tell | asked unless a rule in its home allows it |
//! | `apply_patch` | a change of files | always asked |
//! | `mcp__SERVER__TOOL` | a tool of an MCP server | always asked, but for servers that a plugin brings |
//! | `network` | a connection that the sandbox has stopped | always asked |
//! | `request_permissions` | wider limits for the rest of the turn | always asked |
//! | `web_search` | a search in the web | never asked, so it is there only where it is allowed |
//! | `spawn_agent`, `wait` and the like | agents of its own | never asked, but what these do is; not there where it is denied |

mod app_server;
mod exec;
mod failure;
mod items;

use std::sync::LazyLock;

use serde_json::Value;
use uuid::Uuid;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities, owned};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::one_way::OneWayDialogue;
use crate::adapters::order::{Launch, Order, OrderError};
use crate::adapters::permissions::{Permission, Permissions};
use app_server::AppServer;
use exec::ExecOutput;

/// What rules can name: the table above.
const TOOLS: [&str; 11] = [
    "shell",
    "apply_patch",
    "mcp__*",
    "network",
    "request_permissions",
    "web_search",
    "spawn_agent",
    "send_input",
    "resume_agent",
    "wait",
    "close_agent",
];

/// OpenAI's `codex`.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

static ABOUT: LazyLock<About> = LazyLock::new(|| About {
    name: "codex".to_owned(),
    title: "Codex".to_owned(),
    binary: Binary {
        names: owned(&["codex"]),
        version_args: owned(&["--version"]),
        tested: owned(&["0.166."]),
        install: "npm install -g @openai/codex".to_owned(),
        // A key in the environment is not enough: Codex 0.166 reads OPENAI_API_KEY only for providers whose `env_key`
        // names it, and CODEX_API_KEY only in `exec`.
        login: format!("{}, or `printenv OPENAI_API_KEY | codex login --with-api-key`", failure::LOGIN),
        login_signs: login_signs(),
        refuses_root: false,
    },
    capabilities: Capabilities { approvals: true, resume: true, chosen_session: false },
    variables: owned(&[
        "CODEX_HOME",
        "CODEX_SQLITE_HOME",
        "CODEX_API_KEY",
        "CODEX_ACCESS_TOKEN",
        "CODEX_CA_CERTIFICATE",
        "OPENAI_API_KEY",
    ]),
});

/// Keys in variables are no signs: it does not read them in all the ways it is run here.
fn login_signs() -> Vec<LoginSign> {
    vec![LoginSign::file(&[("CODEX_HOME", "auth.json"), ("HOME", ".codex/auth.json")], Some(""))]
}

impl Adapter for Codex {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn tool_names(&self) -> Vec<&str> {
        TOOLS.to_vec()
    }

    fn command_tools(&self) -> Vec<&str> {
        vec![items::SHELL]
    }

    fn permission(&self, permissions: &Permissions, tool: &str, input: &Value) -> Permission {
        items::permission(permissions, tool, input)
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        if let Some(id) = order.session.resumed()
            && Uuid::try_parse(id).is_err()
        {
            // `exec resume` takes anything else for a name, and begins a new conversation if none has it.
            return Err(OrderError::Unsupported(format!(
                "the conversation {id:?} cannot be taken up again: Codex names its conversations with UUIDs"
            )));
        }
        let allows_all = order.permissions.default == Permission::Allow && !order.permissions.has_rules();
        let (args, dialogue): (_, Box<dyn Dialogue>) = if allows_all {
            (exec_args(order), Box::new(OneWayDialogue::new(Some(order.prompt.clone()), ExecOutput::new(order))))
        } else {
            (app_server_args(order), Box::new(AppServer::new(order)))
        };
        Ok((Launch { args, env: Vec::new(), input: true }, dialogue))
    }
}

/// Whether it runs read-only, since everything is denied and no tool is named.
fn read_only(permissions: &Permissions) -> bool {
    permissions.default == Permission::Deny && !permissions.has_rules()
}

/// Model and effort are no arguments here: they are parameters of the app server's requests.
fn app_server_args(order: &Order) -> Vec<String> {
    let mut args = vec!["app-server".to_owned()];
    args.extend(without_trust(order));
    if order.permissions.of("web_search") != Permission::Allow {
        args.extend(setting("web_search", "disabled"));
    }
    if order.permissions.of("spawn_agent") == Permission::Deny {
        args.extend(["-c".to_owned(), "features.multi_agent=false".to_owned()]);
    }
    args.extend(order.args.iter().cloned());
    args
}

fn exec_args(order: &Order) -> Vec<String> {
    let mut args = vec!["exec".to_owned()];
    // It refuses a flag that is given twice, so what the operator gives is not given again.
    for flag in ["--json", "--skip-git-repo-check"] {
        if !order.args.iter().any(|given| given == flag) {
            args.push(flag.to_owned());
        }
    }
    if !chooses_sandbox(&order.args) {
        args.extend(["--sandbox".to_owned(), "workspace-write".to_owned()]);
    }
    if let Some(model) = &order.model {
        args.extend(setting("model", model));
    }
    if let Some(effort) = &order.effort {
        args.extend(setting("model_reasoning_effort", effort));
    }
    args.extend(without_trust(order));
    args.extend(order.args.iter().cloned());
    args.extend(order.session.resumed().into_iter().flat_map(|id| ["resume".to_owned(), id.clone()]));
    args.push("-".to_owned());
    args
}

/// Codex trusts a folder as soon as it may write there, and writes that into the user's `config.toml`. What `.codex` in
/// the folder says then counts: programs that are run at the start, commands that are not asked about. So the folder
/// and all above it are declared untrusted, which wins over that file, unless the operator's arguments set it.
fn without_trust(order: &Order) -> Vec<String> {
    if order.args.iter().any(|arg| arg.contains("trust_level")) {
        return Vec::new();
    }
    // Codex too writes such names with what is no text replaced.
    let folders = order.cwd.ancestors().map(|folder| quoted(&folder.to_string_lossy()));
    let levels: Vec<String> = folders.map(|folder| format!("{folder}={{trust_level=\"untrusted\"}}")).collect();
    vec!["-c".to_owned(), format!("projects={{{}}}", levels.join(","))]
}

/// Whether the operator's arguments say what the sandbox is to be.
fn chooses_sandbox(args: &[String]) -> bool {
    args.iter().any(|arg| {
        arg.starts_with("--sandbox")
            || arg.starts_with("-s")
            || arg.starts_with("--dangerously-bypass-approvals")
            || arg == "--yolo"
            || arg == "--approve-for-me"
            || arg.contains("sandbox_mode")
            || arg.contains("default_permissions")
    })
}

fn setting(key: &str, value: &str) -> [String; 2] {
    ["-c".to_owned(), format!("{key}={}", quoted(value))]
}

/// A TOML string. A JSON string is one but for one character.
fn quoted(value: &str) -> String {
    Value::from(value).to_string().replace('\u{7f}', "\\u007f")
}
