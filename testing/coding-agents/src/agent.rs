//! The agents that are tested.

use std::path::Path;

use fake_model::Wire;
use url::Url;

use crate::homes;

/// One of the installed agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
}

impl Agent {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// What its program is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// How it speaks to its model.
    pub fn wire(self) -> Wire {
        match self {
            Self::Claude => Wire::AnthropicMessages,
            Self::Codex => Wire::OpenAiResponses,
            Self::Gemini => Wire::GeminiGenerateContent,
            Self::Opencode => Wire::OpenAiChatCompletions,
        }
    }

    /// The model its home pins, as the endpoint is asked for it.
    pub fn model(self) -> &'static str {
        match self {
            Self::Claude => homes::CLAUDE_MODEL,
            Self::Codex | Self::Opencode => homes::FAKE_MODEL,
            Self::Gemini => homes::GEMINI_MODEL,
        }
    }

    /// Makes a home for it; see [`homes`].
    pub fn prepare(self, home: &Path, endpoint: &Url) -> std::io::Result<Vec<(String, String)>> {
        match self {
            Self::Claude => homes::claude(home, endpoint),
            Self::Codex => homes::codex(home, endpoint),
            Self::Gemini => homes::gemini(home, endpoint),
            Self::Opencode => homes::opencode(home, endpoint),
        }
    }
}
