//! Claude Code: `claude -p` with JSON lines on its standard input and output.
//!
//! The prompt is written to the child rather than given as an argument, so it may be long and begin with a dash, and
//! the input stays open while the turn runs, because approval requests are answered there. That protocol is the one of
//! Anthropic's own libraries and is not documented: it is read leniently, and only what is needed of it is written.
//!
//! The operator's permissions hold in any folder, whatever its files say. The program would take rules, commands to run
//! (hooks, servers of tools, helpers for keys), skills, agents and variables from the folder, and no approval guards
//! them in this mode; so of all settings only those of the user are read. The project's instructions, its `CLAUDE.md`
//! and `.claude/rules`, are still read, but not those of folders above and below. An operator who trusts the folder
//! adds `--setting-sources user,project,local`.
//!
//! Where the default is to ask, the program goes on deciding by itself what needs no question: plain reads within the
//! folder, commands that only read, its own notes, and what the user's settings allow. Where it is to deny, all that is
//! not allowed by name is refused, those too. What is denied is refused always.

mod approvals;
mod background;
mod deny_hook;
mod dialogue;
mod instructions;
mod message_stream;
mod outcome;
mod tools;
mod usage;

use std::sync::LazyLock;

use serde_json::Value;
use uuid::Uuid;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities, owned};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::order::{Launch, Order, OrderError, Session};
use crate::adapters::permissions::{Permission, Permissions};
use dialogue::ClaudeDialogue;

/// How to log in; also part of the failure when the program is not.
const LOGIN: &str = "run `claude` once and log in, or set ANTHROPIC_API_KEY";

/// What `--effort` takes. Another word would be ignored with no more than a warning on standard error.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Its keys and paths, as its documentation names them. Cloud providers' keys are left to the operator.
const VARIABLES: [&str; 16] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "API_TIMEOUT_MS",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
    "MAX_THINKING_TOKENS",
];

/// Its tools. A newer version may have more; those can be denied in its own settings.
const TOOLS: &str = "\
    Agent Artifact AskUserQuestion Bash BashOutput Brief CronCreate CronDelete CronList DesignSync Edit \
    EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillShell LSP ListAgents ListMcpResourcesTool \
    Monitor MultiEdit NotebookEdit PowerShell Projects PushNotification REPL Read ReadMcpResourceDirTool \
    ReadMcpResourceTool RemoteTrigger ReportFindings ScheduleWakeup SendMessage SendUserFile SendUserMessage \
    ShareOnboardingGuide Skill StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate \
    TodoWrite ToolSearch WaitForMcpServers WebFetch WebSearch Workflow Write mcp__*";

/// The adapter of Claude Code.
#[derive(Clone, Copy, Debug)]
pub struct ClaudeCode;

static ABOUT: LazyLock<About> = LazyLock::new(|| About {
    name: "claude-code".to_owned(),
    title: "Claude Code".to_owned(),
    binary: Binary {
        names: owned(&["claude"]),
        version_args: owned(&["--version"]),
        tested: owned(&["2.1."]),
        install: "npm install -g @anthropic-ai/claude-code".to_owned(),
        login: LOGIN.to_owned(),
        login_signs: login_signs(),
        // Only its ways of skipping permissions, which an operator may add.
        refuses_root: true,
    },
    capabilities: Capabilities { approvals: true, resume: true, chosen_session: true },
    variables: owned(&VARIABLES),
});

impl Adapter for ClaudeCode {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn tool_names(&self) -> Vec<&str> {
        TOOLS.split_whitespace().collect()
    }

    fn command_tools(&self) -> Vec<&str> {
        vec![tools::SHELL]
    }

    fn permission(&self, permissions: &Permissions, tool: &str, input: &Value) -> Permission {
        tools::permission(permissions, tool, input)
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        let env = [
            // An update in the middle of a turn would exchange the program under other turns.
            ("DISABLE_AUTOUPDATER", "1"),
            // It then reports when it is idle. A result alone does not show whether another one follows.
            ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
            // A caller who writes `@/etc/passwd` would get that file before the model, whatever is denied.
            ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
            // The project's instructions are read from added folders.
            ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
        ];
        let launch = Launch {
            args: arguments(order)?,
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            input: true,
        };
        Ok((launch, Box::new(ClaudeDialogue::new(order))))
    }
}

/// On Linux it keeps what a login gave it in a file, and a key it has made for itself among its settings. The operator
/// may also have configured a helper, or a cloud provider, which has a login of its own.
fn login_signs() -> Vec<LoginSign> {
    let file = |name: &str, usual: &str, holds: &str| {
        LoginSign::file(&[("CLAUDE_CONFIG_DIR", name), ("HOME", usual)], Some(holds))
    };
    let mut signs = LoginSign::variables(&[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_VERTEX",
    ]);
    signs.extend([
        file(".credentials.json", ".claude/.credentials.json", "/claudeAiOauth"),
        file(".claude.json", ".claude.json", "/primaryApiKey"),
        file("settings.json", ".claude/settings.json", "/apiKeyHelper"),
        file("settings.json", ".claude/settings.json", "/env/ANTHROPIC_API_KEY"),
        file("settings.json", ".claude/settings.json", "/env/ANTHROPIC_AUTH_TOKEN"),
    ]);
    signs
}

/// What the program is started with. What the operator adds comes last, so that it wins.
fn arguments(order: &Order) -> Result<Vec<String>, OrderError> {
    let mut args = vec!["-p".to_owned()];
    // The program takes everything up to the next flag for tools and folders, so other flags must follow.
    let denied = denied(&order.permissions);
    if !denied.is_empty() {
        args.extend(["--disallowedTools".to_owned(), denied.join(",")]);
    }
    if instructions::are_inside(&order.cwd) {
        args.extend(["--add-dir".to_owned(), ".".to_owned()]);
    }
    let fixed = "--setting-sources user --input-format stream-json --output-format stream-json --verbose --include-partial-messages \
                 --permission-prompt-tool stdio --permission-mode default";
    args.extend(fixed.split_whitespace().map(str::to_owned));
    let (flag, session) = match &order.session {
        Session::New(session) => ("--session-id", session),
        Session::Resume(session) => ("--resume", session),
    };
    // Anything else after `--resume` would be searched for among the titles of conversations.
    if Uuid::parse_str(session).is_err() {
        return Err(OrderError::Unsupported(format!(
            "session `{session}` is not one of Claude Code: its sessions are UUIDs"
        )));
    }
    args.extend([flag.to_owned(), session.clone()]);
    if let Some(model) = &order.model {
        if model.is_empty() || model.starts_with('-') {
            return Err(OrderError::Unsupported(format!(
                "model `{model}` is not a model's name: name one, like `sonnet`"
            )));
        }
        args.extend(["--model".to_owned(), model.clone()]);
    }
    if let Some(effort) = &order.effort {
        if !EFFORTS.contains(&effort.as_str()) {
            let efforts = EFFORTS.join(", ");
            return Err(OrderError::Unsupported(format!("effort `{effort}` is not one of Claude Code: use {efforts}")));
        }
        args.extend(["--effort".to_owned(), effort.clone()]);
    }
    args.extend(order.args.iter().cloned());
    Ok(args)
}

/// Tools that the model need not even see. Others are refused when they are used.
fn denied(permissions: &Permissions) -> Vec<&str> {
    let is_any_allowed = !permissions.allow.is_empty() || !permissions.allow_commands.is_empty();
    if permissions.default == Permission::Deny && !is_any_allowed {
        return vec!["*"];
    }
    permissions.deny.iter().map(String::as_str).filter(|rule| names_tools(rule)).collect()
}

/// Whether the program understands a rule as we do: a tool's name, in which `*` stands for any characters. Other rules
/// would be split or taken for flags; they are obeyed when a tool is used.
fn names_tools(rule: &str) -> bool {
    let understood = |character: char| character.is_ascii_alphanumeric() || "_-*.".contains(character);
    !rule.is_empty() && !rule.starts_with('-') && rule.chars().all(understood)
}
