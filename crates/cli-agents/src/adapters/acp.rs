//! Agents that speak the Agent Client Protocol, version 1: gemini, opencode, and any other that an operator names.
//!
//! The messages are those of the published crate `agent-client-protocol-schema`. The crate above it,
//! `agent-client-protocol`, would bring connections, processes and an executor of its own, and nothing here may do
//! input or output. Messages of agents are read more leniently than the crate's types would: an unknown update
//! must never end a turn.
//!
//! A tool is named by its *kind*, in the protocol's words: `read`, `edit`, `delete`, `move`, `search`, `execute`,
//! `think`, `fetch`, `switch_mode`, `other`. Titles are made for people and change while a tool runs, and each agent
//! puts tool names in a different field; kinds mean the same with every agent, so rules about them do too.
//!
//! gemini and opencode are run over the protocol only where they must ask; their own one-way formats report more and
//! start sooner.

mod dialogue;
mod errors;
mod message;
mod permission_requests;
mod session_settings;
mod tools;
mod updates;
mod usage;

use serde_json::Value;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::gemini::{Gemini, trust};
use crate::adapters::opencode::{self, Opencode, plugins};
use crate::adapters::order::{Launch, Order, OrderError};
use crate::adapters::permissions::{Permission, Permissions};
use dialogue::AcpDialogue;

/// An agent that speaks the Agent Client Protocol on its standard streams.
#[derive(Clone, Debug)]
pub struct Acp {
    about: About,
    /// The arguments that select the protocol.
    args: Vec<String>,
    kind: Kind,
}

/// Programs with special handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Gemini,
    Opencode,
}

/// The tools of gemini that are the only ones of their kind, so that a rule about the one is a rule about the other.
const GEMINI_TOOLS: [(&str, &str); 2] = [("run_shell_command", "execute"), ("web_fetch", "fetch")];

impl Acp {
    /// The tool kinds of the protocol, as permission rules name them.
    pub const KINDS: [&str; 10] =
        ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];

    /// An agent without special handling.
    #[must_use]
    pub fn any(name: impl Into<String>, program: impl Into<String>, args: Vec<String>) -> Self {
        let (name, program) = (name.into(), program.into());
        let binary = Binary {
            version_args: vec!["--version".to_owned()],
            install: format!("install {program} and put it on the path"),
            login: format!("log in with {program} itself, as the user that runs the server"),
            names: vec![program],
            ..Binary::default()
        };
        let about = About { title: name.clone(), name, binary, capabilities: CAPABILITIES, variables: Vec::new() };
        Self { about, args, kind: Kind::Any }
    }

    /// Gemini CLI.
    ///
    /// Version 0.61 loses resumed sessions in two cases that no option can prevent: a session resumed in the minute in
    /// which it began, because both runs write to one file; and one that was resumed before, when a later run cleans
    /// up. The second ends with `general.sessionRetention.enabled` set to false in its settings.
    #[must_use]
    pub fn gemini() -> Self {
        let about = About { capabilities: CAPABILITIES, ..Gemini.about().clone() };
        // The mode is named so that the user's own settings cannot choose one that asks less.
        let args = ["--acp", "--approval-mode", "default"];
        Self { about, args: args.map(str::to_owned).to_vec(), kind: Kind::Gemini }
    }

    /// opencode.
    #[must_use]
    pub fn opencode() -> Self {
        let about = About { capabilities: CAPABILITIES, ..Opencode.about().clone() };
        Self { about, args: vec!["acp".to_owned()], kind: Kind::Opencode }
    }

    /// All names of a tool that the dialogue calls by its kind.
    fn names<'a>(&self, kind: &'a str) -> Vec<&'a str> {
        let tools = GEMINI_TOOLS.iter().filter(|(_, of)| self.kind == Kind::Gemini && *of == kind);
        std::iter::once(kind).chain(tools.map(|(tool, _)| *tool)).collect()
    }

    /// Kinds that a rule denies by name. Their use is a breach if the agent does not ask.
    fn denied_kinds(&self, permissions: &Permissions) -> Vec<&'static str> {
        Self::KINDS.into_iter().filter(|kind| permissions.denies_by_name(&self.names(kind))).collect()
    }

    fn launch(&self, order: &Order) -> Result<Launch, OrderError> {
        let mut launch = Launch { args: self.args.clone(), env: Vec::new(), input: true };
        match self.kind {
            Kind::Any => {}
            Kind::Gemini => {
                if let Some(model) = &order.model {
                    launch.args.extend(["-m".to_owned(), model.clone()]);
                }
                // Else a parent process in between swallows signals.
                launch.env.push(("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned()));
                launch.env.push(trust::variable(order));
            }
            // By itself it asks about next to nothing.
            Kind::Opencode => {
                launch.env.push(opencode::no_project());
                let variable = opencode::permission::variable(&order.permissions)?;
                launch.env.push(("OPENCODE_PERMISSION".to_owned(), variable));
            }
        }
        launch.args.extend(order.args.iter().cloned());
        Ok(launch)
    }
}

/// Whether an agent can resume sessions is known only after `initialize`; the dialogue fails the turn if it cannot.
const CAPABILITIES: Capabilities = Capabilities { approvals: true, resume: true, chosen_session: false };

impl Adapter for Acp {
    fn about(&self) -> &About {
        &self.about
    }

    fn tool_names(&self) -> Vec<&str> {
        let tools = match self.kind {
            Kind::Any => Vec::new(),
            Kind::Gemini => GEMINI_TOOLS.map(|(tool, _)| tool).to_vec(),
            Kind::Opencode => opencode::permission::TOOLS.to_vec(),
        };
        [&Self::KINDS[..], &tools].concat()
    }

    /// Gemini and opencode do not report their commands reliably.
    fn command_tools(&self) -> Vec<&str> {
        if self.kind == Kind::Any { vec!["execute"] } else { Vec::new() }
    }

    fn permission(&self, permissions: &Permissions, tool: &str, input: &Value) -> Permission {
        permissions.of_call(&self.names(tool), self.command(tool, input))
    }

    fn knows_its_version(&self) -> bool {
        self.kind != Kind::Any
    }

    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        match self.kind {
            Kind::Any | Kind::Gemini => Ok(()),
            Kind::Opencode => opencode::permission::variable(permissions).map(|_| ()),
        }
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        let Some(cwd) = order.cwd.to_str().filter(|_| order.cwd.is_absolute()) else {
            let cwd = order.cwd.display();
            let text = format!("the working directory is {cwd}, and this agent takes only an absolute path in UTF-8");
            return Err(OrderError::Unsupported(text));
        };
        if self.kind == Kind::Opencode {
            plugins::refuse(order)?;
        }
        let denied = self.denied_kinds(&order.permissions);
        Ok((self.launch(order)?, Box::new(AcpDialogue::new(order, cwd, denied))))
    }
}
