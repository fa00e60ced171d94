//! opencode, run once for a turn: `opencode run --format json`.
//!
//! In this mode it cannot request approval during a turn: a call that would need it is refused.

mod dialogue;
pub(crate) mod permission;
pub(crate) mod plugins;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities};
use crate::adapters::dialogue::{Dialogue, Exit};
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::order::{Launch, Order, OrderError, Session};
use crate::adapters::permissions::Permissions;
use dialogue::OpencodeDialogue;

/// opencode.
#[derive(Debug)]
pub struct Opencode {
    about: About,
}

impl Default for Opencode {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether it ended because another one was making the database of a new home at the same time.
pub(crate) fn lost_a_race(exit: &Exit) -> bool {
    ["database is locked", "Failed query:"].iter().any(|sign| exit.stderr.contains(sign))
}

impl Opencode {
    /// What is known of it.
    #[must_use]
    pub fn new() -> Self {
        // Keys of the providers that most people use, and where its own files are.
        let variables = [
            "ANTHROPIC_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "OPENAI_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_CONFIG_DIR",
            "OPENROUTER_API_KEY",
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
        ];
        Self {
            about: About {
                name: "opencode".to_owned(),
                title: "opencode".to_owned(),
                binary: Binary {
                    names: vec!["opencode".to_owned()],
                    version_args: vec!["--version".to_owned()],
                    tested: vec!["1.18.".to_owned()],
                    install: "npm install -g opencode-ai".to_owned(),
                    login: "run `opencode auth login`, or set the key of your provider, such as ANTHROPIC_API_KEY"
                        .to_owned(),
                    login_signs: login_signs(),
                    refuses_root: false,
                },
                capabilities: Capabilities { approvals: false, resume: true, chosen_session: false },
                variables: variables.map(str::to_owned).to_vec(),
            },
        }
    }
}

/// Keys of the usual providers, and the file with those that were typed in.
fn login_signs() -> Vec<LoginSign> {
    let mut signs = LoginSign::variables(&[
        "ANTHROPIC_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "OPENAI_API_KEY",
        "OPENCODE_API_KEY",
        "OPENROUTER_API_KEY",
    ]);
    let places = [("XDG_DATA_HOME", "opencode/auth.json"), ("HOME", ".local/share/opencode/auth.json")];
    signs.push(LoginSign::file(&places, Some("")));
    signs
}

/// Keeps what a repository says from counting: servers of tools and tools, which are programs to run, and what it
/// grants to opencode's agents. Its `AGENTS.md` is not read either; opencode has no option for the one without the
/// other.
pub(crate) fn no_project() -> (String, String) {
    ("OPENCODE_DISABLE_PROJECT_CONFIG".to_owned(), "1".to_owned())
}

impl Adapter for Opencode {
    fn about(&self) -> &About {
        &self.about
    }

    fn tool_names(&self) -> Vec<&str> {
        permission::TOOLS.to_vec()
    }

    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        if permissions.may_ask() {
            return Err(FieldError::new("default", "opencode cannot ask in this form", "write allow or deny"));
        }
        permission::variable(permissions).map(|_| ())
    }

    fn caution(&self, order: &Order) -> Option<String> {
        plugins::caution(order)
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        self.check(&order.permissions)?;
        plugins::refuse(order)?;
        let mut args: Vec<String> = ["run", "--format", "json", "--thinking"].map(str::to_owned).to_vec();
        if let Some(model) = &order.model {
            args.push(format!("--model={model}"));
        }
        if let Some(effort) = &order.effort {
            args.push(format!("--variant={effort}"));
        }
        if let Session::Resume(session) = &order.session {
            args.push(format!("--session={session}"));
        }
        args.extend(order.args.iter().cloned());

        let mut env = vec![no_project(), ("OPENCODE_PERMISSION".to_owned(), permission::variable(&order.permissions)?)];
        // It believes this variable more than the directory it was started in.
        if let Some(cwd) = order.cwd.to_str() {
            env.push(("PWD".to_owned(), cwd.to_owned()));
        }
        // The prompt is written to its standard input: as an argument it would be put in quotes if it holds a space.
        let launch = Launch { args, env, input: true };
        Ok((launch, Box::new(OpencodeDialogue::new(order))))
    }
}
