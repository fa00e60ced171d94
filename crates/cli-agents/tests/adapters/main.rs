//! Adapters against what the real programs said.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod acp;
mod claude_code;
mod codex;
mod cursor;
mod declared;
mod gemini;
mod generic;
mod lines;
mod opencode;
mod permissions;
mod replay;
mod text;
