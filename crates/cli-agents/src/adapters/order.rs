//! The input of an adapter (one turn's prompt and options) and its launch.

use std::path::PathBuf;

use crate::adapters::field_error::FieldError;
use crate::adapters::permissions::Permissions;

/// What one turn asks of a program.
#[derive(Clone, Debug)]
pub struct Order {
    /// The caller's message. It may begin with a dash and be long.
    pub prompt: String,
    /// The session it belongs to.
    pub session: Session,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// The model, if it is not the program's own choice.
    pub model: Option<String>,
    /// The reasoning effort, in the program's spelling, unless the program chooses.
    pub effort: Option<String>,
    pub permissions: Permissions,
    /// Arguments the operator adds; before the prompt.
    pub args: Vec<String>,
}

/// The session a turn belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// A new one. Programs that let the caller choose its name get this one; it is a UUID.
    New(String),
    /// One that the program has named before.
    Resume(String),
}

/// How a program is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// Variables it needs beside those the operator lets through. They win over these.
    pub env: Vec<(String, String)>,
    /// Whether something will be written to it. Else its standard input is empty.
    pub input: bool,
}

/// Why a program cannot run a turn; shown to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The program takes the prompt as an argument, and the system does not take arguments that long.
    #[error("the message has {bytes} bytes, and this agent takes at most {most}: send a shorter one")]
    PromptTooLong { bytes: usize, most: usize },
    /// The prompt holds a zero byte, which no argument can.
    #[error("the message holds a zero character, which this agent cannot be given: remove it")]
    ZeroByte,
    /// There is nothing to do.
    #[error("the message has no text: say what to do")]
    NoPrompt,
    /// The program cannot do what is configured.
    #[error("{0}")]
    Unsupported(String),
}

impl From<FieldError> for OrderError {
    fn from(error: FieldError) -> Self {
        Self::Unsupported(error.within("permissions").to_string())
    }
}

impl Session {
    /// The id of a session that is taken up again.
    pub(crate) fn resumed(&self) -> Option<&String> {
        match self {
            Self::New(_) => None,
            Self::Resume(id) => Some(id),
        }
    }

    /// The id as far as it is known before the program says one: a new one is, if the program `takes` it.
    pub(crate) fn known(&self, takes: bool) -> Option<String> {
        match self {
            Self::New(id) => takes.then(|| id.clone()),
            Self::Resume(id) => Some(id.clone()),
        }
    }
}

/// A flag with its value in one argument, if there is a value.
pub(crate) fn flag(name: &str, value: Option<&String>) -> Option<String> {
    value.map(|value| format!("{name}={value}"))
}

impl Order {
    /// The longest argument that Linux takes is 128 KiB, with its zero byte.
    pub const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

    /// Refuses an empty prompt: programs take one for a mistake in their arguments.
    pub(crate) fn require_prompt(&self) -> Result<(), OrderError> {
        if self.prompt.trim().is_empty() { Err(OrderError::NoPrompt) } else { Ok(()) }
    }

    /// The prompt, if it can be an argument.
    pub fn prompt_argument(&self) -> Result<String, OrderError> {
        let bytes = self.prompt.len();
        if bytes > Self::LONGEST_ARGUMENT {
            return Err(OrderError::PromptTooLong { bytes, most: Self::LONGEST_ARGUMENT });
        }
        if self.prompt.contains('\0') {
            return Err(OrderError::ZeroByte);
        }
        Ok(self.prompt.clone())
    }
}
