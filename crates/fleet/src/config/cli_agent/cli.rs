//! The programs that `cli` can name.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_cli_agents::adapters::{Acp, Adapter, ClaudeCode, Codex, Cursor, Gemini, Opencode};
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::value::{Scalar, choice};

/// A kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cli {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor's agent.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    Opencode,
    /// Any program that speaks the Agent Client Protocol.
    Acp,
    /// Any program.
    Generic,
}

/// What people call some of them, after their programs and packages.
const OTHER_NAMES: [(&str, &str); 4] =
    [("claude", "claude-code"), ("cursor-agent", "cursor"), ("gemini-cli", "gemini"), ("codex-cli", "codex")];

impl Cli {
    const NAMES: [(&str, Self); 7] = [
        ("claude-code", Self::ClaudeCode),
        ("codex", Self::Codex),
        ("cursor", Self::Cursor),
        ("gemini", Self::Gemini),
        ("opencode", Self::Opencode),
        ("acp", Self::Acp),
        ("generic", Self::Generic),
    ];

    /// What `cli` calls it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, cli)| *cli == self).map_or("", |(name, _)| name)
    }

    /// The kind that `cli` calls so.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, cli)| *cli)
    }

    /// How a program is spoken to that is known by its name. Without approvals on the way, the one-way forms of some tell
    /// more and start sooner.
    pub fn adapter(self, asks: bool) -> Option<Arc<dyn Adapter>> {
        Some(match self {
            Self::ClaudeCode => Arc::new(ClaudeCode),
            Self::Codex => Arc::new(Codex),
            Self::Cursor => Arc::new(Cursor),
            Self::Gemini if asks => Arc::new(Acp::gemini()),
            Self::Gemini => Arc::new(Gemini),
            Self::Opencode if asks => Arc::new(Acp::opencode()),
            Self::Opencode => Arc::new(Opencode),
            Self::Acp | Self::Generic => return None,
        })
    }

    /// Whether it is a program that is known by its name, so that the file need not say how it is started.
    pub(super) fn is_known(self) -> bool {
        !matches!(self, Self::Acp | Self::Generic)
    }
}

impl fmt::Display for Cli {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Scalar for Cli {
    const WRITE: &'static str = "claude-code, codex, cursor, gemini, opencode, acp or generic";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let Some((_, name)) = OTHER_NAMES.iter().find(|(other, _)| *other == text) else {
            return choice(text, &Self::NAMES);
        };
        Err(Mismatch::new(format!("\"{text}\" is not one of its values"), format!("did you mean {name}?")))
    }
}
