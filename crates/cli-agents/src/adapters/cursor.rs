//! Cursor's agent on the command line, run once for a turn: `cursor-agent -p --output-format stream-json`.
//!
//! Written after its documentation: it needs an account, so no recording of it is in our tests. It cannot ask while it
//! works, and without `--force` it would edit files unasked; so it is started only to do everything, or only to read.

mod output;

use std::sync::LazyLock;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities, owned};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::one_way::OneWayDialogue;
use crate::adapters::order::{Launch, Order, OrderError, flag};
use crate::adapters::permissions::{Permission, Permissions};
use output::CursorOutput;

/// Cursor's agent.
#[derive(Clone, Copy, Debug)]
pub struct Cursor;

static ABOUT: LazyLock<About> = LazyLock::new(|| About {
    name: "cursor".to_owned(),
    title: "Cursor".to_owned(),
    binary: Binary {
        // The second is its newer name, but other programs may have that too.
        names: owned(&["cursor-agent", "agent"]),
        version_args: owned(&["--version"]),
        install: "curl https://cursor.com/install -fsS | bash".to_owned(),
        login: "run `cursor-agent login`, or set CURSOR_API_KEY".to_owned(),
        login_signs: login_signs(),
        ..Binary::default()
    },
    capabilities: Capabilities { approvals: false, resume: true, chosen_session: false },
    variables: owned(&["CURSOR_API_KEY", "CURSOR_AUTH_TOKEN", "CURSOR_CONFIG_DIR", "XDG_CONFIG_HOME"]),
});

/// Keys, and the files in which users have found what a login gave it: its documentation does not say where that is.
fn login_signs() -> Vec<LoginSign> {
    let tokens = [
        ("CURSOR_CONFIG_DIR", "auth.json"),
        ("XDG_CONFIG_HOME", "cursor/auth.json"),
        ("HOME", ".config/cursor/auth.json"),
    ];
    let account = [("CURSOR_CONFIG_DIR", "cli-config.json"), ("HOME", ".cursor/cli-config.json")];
    let mut signs = LoginSign::variables(&["CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"]);
    signs.extend([LoginSign::file(&tokens, Some("/accessToken")), LoginSign::file(&account, Some("/authInfo"))]);
    signs
}

impl Adapter for Cursor {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        permission_arg(permissions).map(|_| ())
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        if order.effort.is_some() {
            return Err(OrderError::Unsupported(
                "cursor has no setting for how hard to think: remove `effort`, and choose a model that thinks as hard \
                 as you want"
                    .to_owned(),
            ));
        }
        let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--trust"].map(str::to_owned).to_vec();
        args.extend(flag("--model", order.model.as_ref()));
        args.push(permission_arg(&order.permissions)?.to_owned());
        args.extend(flag("--resume", order.session.resumed()));
        args.extend(order.args.iter().cloned());

        let most = Order::LONGEST_ARGUMENT - "\n".len();
        if order.prompt.len() > most {
            return Err(OrderError::PromptTooLong { bytes: order.prompt.len(), most });
        }
        // Where the prompt stands, one word may be a command: `logout`. With a line end it is none.
        let prompt = order.prompt_argument()? + "\n";
        args.extend(["--".to_owned(), prompt]);
        let launch = Launch { args, env: Vec::new(), input: false };
        Ok((launch, Box::new(OneWayDialogue::new(None, CursorOutput::new(order)))))
    }
}

fn permission_arg(permissions: &Permissions) -> Result<&'static str, FieldError> {
    for (key, rules) in permissions.lists() {
        if let Some(rule) = rules.first() {
            let wrong = format!("cursor cannot be told about \"{rule}\" when it starts");
            return Err(FieldError::new(key, wrong, "write it into its own cli-config.json, and remove it here"));
        }
    }
    match permissions.default {
        Permission::Allow => Ok("--force"),
        // Its mode for questions: it only reads.
        Permission::Deny => Ok("--mode=ask"),
        Permission::Ask => {
            let wrong = "cursor cannot ask while it works, and would edit files unasked";
            Err(FieldError::new("default", wrong, "write allow to let it do everything, or deny to let it only read"))
        }
    }
}
