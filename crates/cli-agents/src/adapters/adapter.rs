//! One kind of program.

use std::borrow::Cow;

use serde_json::Value;

use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::order::{Launch, Order, OrderError};
use crate::adapters::permissions::{Permission, Permissions};

/// One kind of program: how it is found, started and understood.
pub trait Adapter: Send + Sync {
    /// What is fixed about it.
    fn about(&self) -> &About;

    /// What rules can name in it; a `*` stands for any characters, where not all names are known.
    fn tool_names(&self) -> Vec<&str> {
        vec!["*"]
    }

    /// Of these, the ones that run a command and report it before they do, so that rules may have a pattern for it.
    fn command_tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The command that a call would run, if it is known.
    fn command<'a>(&self, tool: &str, input: &'a Value) -> Option<Cow<'a, str>> {
        let runs_commands = self.command_tools().iter().any(|known| [tool, "*"].contains(known));
        input.get("command").filter(|_| runs_commands).and_then(Value::as_str).map(Cow::Borrowed)
    }

    /// What to do about a call that it asks about.
    fn permission(&self, permissions: &Permissions, tool: &str, input: &Value) -> Permission {
        permissions.of_call(&[tool], self.command(tool, input).as_deref())
    }

    /// Whether it can be held to permissions.
    ///
    /// # Errors
    /// What it cannot be told, as a setting within `permissions`.
    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        let _ = permissions;
        Ok(())
    }

    /// How to start it for a turn, and the dialogue to have with it.
    ///
    /// # Errors
    /// If it cannot do what is ordered.
    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError>;

    /// What a conversation that is taken up again can be told. The rest it keeps as it began.
    fn retold(&self) -> Told {
        Told { model: true, effort: true }
    }

    /// Whether it is known to say its version when it is asked as [`Binary`] says. Where that is a guess, a program that
    /// does not take the question may still be a good one.
    fn knows_its_version(&self) -> bool {
        true
    }

    /// What the operator should know although the order can be done; what to do about it stands after the last colon.
    fn caution(&self, _: &Order) -> Option<String> {
        None
    }
}

/// What is fixed about a kind of program.
#[derive(Clone, Debug)]
pub struct About {
    /// What `cli:` calls it.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// How it is found.
    pub binary: Binary,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Variables the child sees besides the common ones, where the operator names none: keys and places of its own.
    pub variables: Vec<String>,
}

/// How a program is found and what versions of it are known.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Names to look for on the path, best first.
    pub names: Vec<String>,
    /// Arguments with which it prints its version.
    pub version_args: Vec<String>,
    /// Versions that were tested begin with one of these: `2.1.`. Empty if any will do.
    pub tested: Vec<String>,
    /// How to install it: one command.
    pub install: String,
    /// How to log in, as the rest of a sentence: `run … login, or set …_KEY`. No capital before it, no full stop after.
    pub login: String,
    /// By what it can be seen that it is logged in; any one will do. Empty if nothing is known of that.
    pub login_signs: Vec<LoginSign>,
    /// Whether it refuses to run as root, at least in some ways.
    pub refuses_root: bool,
}

/// What a program can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which model to use.
    pub model: bool,
    /// How hard to think.
    pub effort: bool,
}

/// What a program can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It can ask while it works and take the answer.
    pub approvals: bool,
    /// It can take up a conversation again in a new process.
    pub resume: bool,
    /// The caller chooses the conversation's name, so that it is known before the program has said anything.
    pub chosen_session: bool,
}
