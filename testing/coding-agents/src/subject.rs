//! What is checked: an agent, and the way it is configured.

use coding_agents_tests::Agent;
use serde_json::{Value, json};

/// An agent in one of the ways it can be run.
pub(crate) struct Subject {
    /// As the names of its checks begin.
    pub(crate) name: &'static str,
    pub(crate) agent: Agent,
    /// What `agents.yaml` says of it.
    pub(crate) keys: Value,
    /// Variables it needs besides those of its home.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Whether it asks before it uses a tool.
    pub(crate) asks: bool,
    /// Whether what the model says is told while it is said.
    pub(crate) streams: bool,
    /// Whether the model is asked again after a tool was denied. Otherwise the turn is over then.
    pub(crate) goes_on_when_denied: bool,
    pub(crate) tells: Tells,
    pub(crate) when_down: WhenDown,
}

/// What an agent tells of what its work has cost.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tells {
    Tokens,
    TokensAndMoney,
}

/// What an agent does when its model cannot be reached.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum WhenDown {
    GivesUp,
    /// Only the limits end it.
    TriesForEver,
}

impl Subject {
    pub(crate) fn all() -> Vec<Self> {
        vec![
            claude(),
            Self { name: "codex", keys: json!({ "cli": "codex" }), ..codex() },
            Self { name: "codex-allow", keys: allowing("codex"), asks: false, streams: false, ..codex() },
            Self { name: "gemini", keys: json!({ "cli": "gemini" }), ..gemini() },
            Self { name: "gemini-allow", keys: allowing("gemini"), asks: false, ..gemini() },
            Self { name: "acp-gemini", keys: acp(&["gemini", "--acp", "--skip-trust"]), ..gemini() },
            Self { name: "opencode", keys: json!({ "cli": "opencode" }), ..opencode() },
            Self { name: "opencode-allow", keys: allowing("opencode"), asks: false, streams: false, ..opencode() },
            Self {
                name: "acp-opencode",
                keys: acp(&["opencode", "acp"]),
                // By itself it asks about nothing.
                variables: &[("OPENCODE_PERMISSION", r#"{"bash":"ask","edit":"ask"}"#)],
                ..opencode()
            },
        ]
    }

    /// Those that may only read, and cannot ask their caller. Codex is told apart by its own tests: its sandbox is the one that denies.
    pub(crate) fn denying() -> Vec<Self> {
        vec![
            Self { name: "claude-deny", keys: denying("claude-code", &["Read"]), asks: false, ..claude() },
            Self { name: "gemini-deny", keys: denying("gemini", &[]), asks: false, ..gemini() },
            Self { name: "opencode-deny", keys: denying("opencode", &["read"]), asks: false, ..opencode() },
        ]
    }

    /// Those whose operator trusts the repository.
    pub(crate) fn trusting() -> Vec<Self> {
        let with = |cli: &str, args: &[&str]| json!({ "cli": cli, "args": args });
        let sources = with("claude-code", &["--setting-sources", "user,project,local"]);
        vec![
            Self { name: "claude-trusted", keys: sources, ..claude() },
            Self { name: "gemini-trusted", keys: with("gemini", &["--skip-trust"]), ..gemini() },
            Self { name: "opencode-trusted", keys: acp(&["opencode", "acp"]), ..opencode() },
        ]
    }
}

fn denying(cli: &str, allow: &[&str]) -> Value {
    json!({ "cli": cli, "permissions": { "default": "deny", "allow": allow } })
}

fn allowing(cli: &str) -> Value {
    json!({ "cli": cli, "permissions": { "default": "allow" } })
}

fn acp(command: &[&str]) -> Value {
    json!({ "cli": "acp", "command": command })
}

pub(crate) fn claude() -> Subject {
    Subject {
        name: "claude",
        agent: Agent::Claude,
        keys: json!({ "cli": "claude-code" }),
        // It would try ten times, longer and longer apart.
        variables: &[("CLAUDE_CODE_MAX_RETRIES", "1")],
        asks: true,
        streams: true,
        goes_on_when_denied: true,
        tells: Tells::TokensAndMoney,
        when_down: WhenDown::GivesUp,
    }
}

fn codex() -> Subject {
    Subject { agent: Agent::Codex, variables: &[], tells: Tells::Tokens, when_down: WhenDown::TriesForEver, ..claude() }
}

fn gemini() -> Subject {
    Subject { agent: Agent::Gemini, ..codex() }
}

fn opencode() -> Subject {
    Subject { agent: Agent::Opencode, goes_on_when_denied: false, ..codex() }
}
