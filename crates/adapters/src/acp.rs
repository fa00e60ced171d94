//! Agents that speak the Agent Client Protocol, version 1: gemini, opencode, and any other that an operator names.
//!
//! The messages are those of the published crate `agent-client-protocol-schema`. The crate above it,
//! `agent-client-protocol`, would bring connections, processes and an executor of its own, and nothing here may do
//! input or output. What agents say is read more leniently than the crate's types would: an update that is not
//! understood must never end a turn.
//!
//! A tool is named by its *kind*, in the protocol's words: `read`, `edit`, `delete`, `move`, `search`, `execute`,
//! `think`, `fetch`, `switch_mode`, `other`. Titles are made for people and change while a tool runs, and each agent
//! hides names in a place of its own; kinds mean the same with every agent, so rules about them do too.

mod conversation;
mod errors;
mod message;
mod permission;
mod settings;
mod text;
mod tools;
mod updates;
mod usage;

use crate::adapter::{About, Adapter, Binary, Capabilities};
use crate::dialogue::Dialogue;
use crate::gemini::{Gemini, trust};
use crate::opencode::{self, Opencode, plugins};
use crate::order::{Launch, Order, OrderError};
use crate::permissions::Permission;
use conversation::Conversation;

/// An agent that speaks the Agent Client Protocol on its standard streams.
#[derive(Clone, Debug)]
pub struct Acp {
    about: About,
    /// What makes the program speak the protocol.
    args: Vec<String>,
    kind: Kind,
}

/// What is special about a program besides how it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Gemini,
    Opencode,
}

/// What opencode is to ask about: by itself it asks about next to nothing. The last rule that fits counts; looking
/// around stays free, except at files that hold secrets, as opencode has it. The names are spelled so that they come
/// after those of its configuration files: see `opencode/permission.rs`.
const OPENCODE_PERMISSION: &str = concat!(
    r#"{"**":"ask","glob *":"allow","grep *":"allow","list *":"allow","todoread *":"allow","todowrite *":"allow","#,
    r#""read *":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"}}"#
);

impl Acp {
    /// An agent of which nothing is known but how it is called.
    #[must_use]
    pub fn any(name: impl Into<String>, program: impl Into<String>, args: Vec<String>) -> Self {
        let (name, program) = (name.into(), program.into());
        let binary = Binary {
            version_args: vec!["--version".to_owned()],
            tested: Vec::new(),
            install: format!("install {program} and put it on the path"),
            login: format!("log in with {program} itself, as the user that runs the server"),
            login_signs: Vec::new(),
            refuses_root: false,
            names: vec![program],
        };
        let about = About { title: name.clone(), name, binary, capabilities: CAPABILITIES, variables: Vec::new() };
        Self { about, args, kind: Kind::Any }
    }

    /// Gemini CLI.
    ///
    /// Version 0.61 loses conversations that are taken up in two ways that nothing said here can prevent: one that is
    /// taken up in the minute in which it began, because both runs write to one file; and one that was taken up before,
    /// when any later run tidies up. The second ends with `general.sessionRetention.enabled` set to false in its settings.
    #[must_use]
    pub fn gemini() -> Self {
        let about = About { capabilities: CAPABILITIES, ..Gemini::new().about().clone() };
        // The mode is named so that the user's own settings cannot choose one that asks less.
        let args = ["--acp", "--approval-mode", "default"];
        Self { about, args: args.map(str::to_owned).to_vec(), kind: Kind::Gemini }
    }

    /// opencode.
    #[must_use]
    pub fn opencode() -> Self {
        let about = About { capabilities: CAPABILITIES, ..Opencode::new().about().clone() };
        Self { about, args: vec!["acp".to_owned()], kind: Kind::Opencode }
    }

    fn launch(&self, order: &Order) -> Launch {
        let mut launch = Launch { args: self.args.clone(), env: Vec::new(), input: true };
        match self.kind {
            Kind::Any => {}
            Kind::Gemini => {
                if let Some(model) = &order.model {
                    launch.args.extend(["-m".to_owned(), model.clone()]);
                }
                // Else a parent process stands between, which swallows signals.
                launch.env.push(("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned()));
                launch.env.push(trust::variable(order));
            }
            Kind::Opencode => {
                launch.env.push(opencode::no_project());
                let anything_goes = order.permissions.default == Permission::Allow && order.permissions.deny.is_empty();
                if !anything_goes {
                    launch.env.push(("OPENCODE_PERMISSION".to_owned(), OPENCODE_PERMISSION.to_owned()));
                }
            }
        }
        launch.args.extend(order.args.iter().cloned());
        launch
    }
}

/// Whether an agent can take up conversations is known only when it has said so; the dialogue tells if it cannot.
const CAPABILITIES: Capabilities = Capabilities { approvals: true, resume: true, chosen_session: false };

impl Adapter for Acp {
    fn about(&self) -> &About {
        &self.about
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        if order.prompt.trim().is_empty() {
            return Err(OrderError::NoPrompt);
        }
        let Some(cwd) = order.cwd.to_str().filter(|_| order.cwd.is_absolute()) else {
            let cwd = order.cwd.display();
            let text = format!("the working directory is {cwd}, and this agent takes only an absolute path in UTF-8");
            return Err(OrderError::Unsupported(text));
        };
        if self.kind == Kind::Opencode {
            plugins::refuse(order)?;
        }
        Ok((self.launch(order), Box::new(Conversation::new(order, cwd))))
    }
}
