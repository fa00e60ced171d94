//! The interface of an adapter: how one CLI agent is found, launched and understood.

use std::path::Path;

use serde_json::Value;

use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::order::{Launch, Order, OrderError};
use crate::adapters::permissions::{Permission, Permissions};

/// The protocol of one CLI agent.
pub trait Adapter: Send + Sync {
    /// Its static description.
    fn about(&self) -> &About;

    /// Tool names that permission rules can use; a `*` stands for any characters, where not all names are known.
    fn tool_names(&self) -> Vec<&str> {
        vec!["*"]
    }

    /// Of these, the ones that run a command and report it before they do, so that rules may have a pattern for it.
    fn command_tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The command that a call would run, if it is known.
    fn command<'a>(&self, tool: &str, input: &'a Value) -> Option<&'a str> {
        let runs_commands = self.command_tools().iter().any(|known| [tool, "*"].contains(known));
        command_alone(input, &[]).filter(|_| runs_commands)
    }

    /// What to do about a call that it asks about.
    fn permission(&self, permissions: &Permissions, tool: &str, input: &Value) -> Permission {
        permissions.of_call(&[tool], self.command(tool, input))
    }

    /// Whether it can be held to permissions.
    fn check(&self, _: &Permissions) -> Result<(), FieldError> {
        Ok(())
    }

    /// Refuses arguments that are added for these permissions or by the operator, if the prompt would be run as code
    /// behind them. The program may be another one than the usual.
    fn check_args(&self, _: Option<&Path>, _: &Permissions, _args: &[String]) -> Result<(), FieldError> {
        Ok(())
    }

    /// The launch and the dialogue of one turn.
    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError>;

    /// The options that a new session accepts.
    fn told(&self) -> TurnOptions {
        TurnOptions { model: true, effort: true }
    }

    /// The options that a resumed session accepts. It keeps the rest from its start.
    fn retold(&self) -> TurnOptions {
        TurnOptions { model: true, effort: true }
    }

    /// Whether [`Binary::version_args`] are known to print the version. Where they are a guess, a program that rejects
    /// them may still work.
    fn knows_its_version(&self) -> bool {
        true
    }

    /// A warning for the operator about an order that can be run; the remedy stands after the last colon.
    fn caution(&self, _: &Order) -> Option<String> {
        None
    }
}

/// The command of a call that says nothing else that would change what is run, such as arguments or variables of its own.
pub(super) fn command_alone<'a>(input: &'a Value, harmless: &[&str]) -> Option<&'a str> {
    const HARMLESS: [&str; 6] = ["command", "description", "title", "timeout", "cwd", "workdir"];
    let is_harmless = |name: &String| HARMLESS.contains(&name.as_str()) || harmless.contains(&name.as_str());
    let members = input.as_object().filter(|members| members.keys().all(is_harmless))?;
    members.get("command")?.as_str()
}

/// Texts of a description.
pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The static description of a CLI agent.
#[derive(Clone, Debug)]
pub struct About {
    pub name: String,
    pub title: String,
    pub binary: Binary,
    pub capabilities: Capabilities,
    /// Environment variables the child gets besides the common ones, unless the operator lists some: its keys and
    /// paths.
    pub variables: Vec<String>,
}

/// How a program is found, and which of its versions were tested.
#[derive(Clone, Debug, Default)]
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
    /// Signs that it is logged in; any one is enough. Empty if none is known.
    pub login_signs: Vec<LoginSign>,
    /// Whether it refuses to run as root, at least in some ways.
    pub refuses_root: bool,
}

/// Which options of an order a program accepts in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnOptions {
    pub model: bool,
    pub effort: bool,
}

/// What a program can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It can request approval during a turn and read the answer.
    pub approvals: bool,
    /// It can resume a session in a new process.
    pub resume: bool,
    /// The session id is chosen here, so that it is known before the program writes its first line.
    pub chosen_session: bool,
}
