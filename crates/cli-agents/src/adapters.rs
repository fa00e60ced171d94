//! The protocols of command-line coding agents: launch arguments, the meaning of each output line, and the replies.
//!
//! Everything here is pure. An [`Adapter`] turns an [`Order`] into a [`Launch`] and a [`Dialogue`]; the code
//! that runs the child process feeds the dialogue its lines and executes the [`Step`]s it returns. So every adapter is
//! tested against recorded output of the real programs, without starting one.

mod acp;
mod adapter;
mod auth_failures;
mod claude_code;
mod codex;
mod cursor;
mod declared;
mod dialogue;
mod event;
mod field_error;
mod gemini;
pub(crate) mod json;
mod json_lines;
mod login_sign;
mod messages;
mod one_way;
mod opencode;
mod order;
mod permissions;
mod plain_text;
mod repository;
mod truncate;

pub use acp::Acp;
pub use adapter::{About, Adapter, Binary, Capabilities, TurnOptions};
pub use claude_code::ClaudeCode;
pub use codex::Codex;
pub use cursor::Cursor;
pub use declared::{ApprovalPattern, Declared, DeclaredError, GenericOptions, Input, Output, check_command};
pub use dialogue::{Dialogue, Ending, Exit, Failure, FailureKind, Step, Steps};
pub use event::{Approval, Choice, ChoiceKind, Decision, Event, Scope, Usage};
pub use field_error::FieldError;
pub use gemini::Gemini;
pub use login_sign::LoginSign;
pub use opencode::Opencode;
pub use order::{Launch, Order, OrderError, Session};
pub use permissions::{CommandRule, Permission, Permissions, can_fit};
pub use plain_text::{plain, plain_lines};
pub use truncate::cut;
