//! opencode, run once for a turn: `opencode run --format json`.
//!
//! In this mode it cannot request approval during a turn: a call that would need it is refused.

mod output;
pub(crate) mod permission;
pub(crate) mod plugins;

use std::sync::LazyLock;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities, owned};
use crate::adapters::dialogue::{Dialogue, Exit};
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::one_way::OneWayDialogue;
use crate::adapters::order::{Launch, Order, OrderError, flag};
use crate::adapters::permissions::Permissions;
use output::OpencodeOutput;

/// opencode.
#[derive(Clone, Copy, Debug)]
pub struct Opencode;

/// Keys of the providers that most people use.
const KEYS: [&str; 5] =
    ["ANTHROPIC_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"];

/// Where its own files are.
const PLACES: [&str; 7] = [
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_CONFIG_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

static ABOUT: LazyLock<About> = LazyLock::new(|| About {
    name: "opencode".to_owned(),
    title: "opencode".to_owned(),
    binary: Binary {
        names: owned(&["opencode"]),
        version_args: owned(&["--version"]),
        tested: owned(&["1.18."]),
        install: "npm install -g opencode-ai".to_owned(),
        login: "run `opencode auth login`, or set the key of your provider, such as ANTHROPIC_API_KEY".to_owned(),
        login_signs: login_signs(),
        refuses_root: false,
    },
    capabilities: Capabilities { approvals: false, resume: true, chosen_session: false },
    variables: owned(&[&KEYS[..], &PLACES].concat()),
});

/// Whether it ended because another one was making the database of a new home at the same time.
pub(crate) fn lost_a_race(exit: &Exit) -> bool {
    ["database is locked", "Failed query:"].iter().any(|sign| exit.stderr.contains(sign))
}

/// Keys of the usual providers, and the file with those that were typed in.
fn login_signs() -> Vec<LoginSign> {
    let mut signs = LoginSign::variables(&KEYS);
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
        &ABOUT
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
        args.extend(flag("--model", order.model.as_ref()));
        args.extend(flag("--variant", order.effort.as_ref()));
        args.extend(flag("--session", order.session.resumed()));
        args.extend(order.args.iter().cloned());

        let mut env = vec![no_project(), ("OPENCODE_PERMISSION".to_owned(), permission::variable(&order.permissions)?)];
        // It believes this variable more than the directory it was started in.
        if let Some(cwd) = order.cwd.to_str() {
            env.push(("PWD".to_owned(), cwd.to_owned()));
        }
        // The prompt is written to its standard input: as an argument it would be put in quotes if it holds a space.
        let launch = Launch { args, env, input: true };
        let dialogue = OneWayDialogue::new(Some(order.prompt.clone()), OpencodeOutput::new(order));
        Ok((launch, Box::new(dialogue)))
    }
}
