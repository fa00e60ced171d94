//! Gemini CLI, run once for a turn: `gemini -o stream-json`.
//!
//! In this form it cannot ask while it works. What it may do is fixed when it starts: everything, or what its own
//! default mode lets it do without a human (reading, searching) and the tools that are allowed by name.

mod output;
pub(crate) mod trust;

use std::sync::LazyLock;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities, owned};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::login_sign::LoginSign;
use crate::adapters::one_way::OneWayDialogue;
use crate::adapters::order::{Launch, Order, OrderError, flag};
use crate::adapters::permissions::{Permission, Permissions};
use output::GeminiOutput;

/// Gemini CLI.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

/// The prompt is glued to its flag, so that one which begins with a dash is no flag.
const PROMPT_FLAG: &str = "--prompt=";

/// What the program reads from its standard input; it silently drops the rest.
const LONGEST_INPUT: usize = 8 << 20;

/// Its tools, as its own policies name them.
const TOOLS: &str = "\
    run_shell_command write_file replace read_file read_many_files list_directory glob grep_search web_fetch \
    google_web_search activate_skill ask_user cli_help codebase_investigator enter_plan_mode exit_plan_mode \
    get_internal_docs invoke_agent list_background_processes list_mcp_resources read_background_output \
    read_mcp_resource update_topic write_todos tracker_* discovered_tool_* mcp_*";

static ABOUT: LazyLock<About> = LazyLock::new(|| About {
    name: "gemini".to_owned(),
    title: "Gemini CLI".to_owned(),
    binary: Binary {
        names: owned(&["gemini"]),
        version_args: owned(&["--version"]),
        tested: owned(&["0.61."]),
        install: "npm install -g @google/gemini-cli".to_owned(),
        login: "run `gemini` once and choose how to log in, or set GEMINI_API_KEY".to_owned(),
        login_signs: login_signs(),
        refuses_root: false,
    },
    capabilities: Capabilities { approvals: false, resume: true, chosen_session: false },
    variables: owned(&[
        "GEMINI_API_KEY",
        "GEMINI_CLI_HOME",
        "GEMINI_MODEL",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_VERTEX_BASE_URL",
    ]),
});

/// It keeps what a login gave it in one of two files, the second of them in cipher.
fn login_signs() -> Vec<LoginSign> {
    let places = [("GEMINI_CLI_HOME", ".gemini/oauth_creds.json"), ("HOME", ".gemini/oauth_creds.json")];
    let ciphered =
        [("GEMINI_CLI_HOME", ".gemini/gemini-credentials.json"), ("HOME", ".gemini/gemini-credentials.json")];
    let mut signs = LoginSign::variables(&["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"]);
    signs.extend([LoginSign::file(&places, Some("")), LoginSign::file(&ciphered, None)]);
    signs
}

impl Adapter for Gemini {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn tool_names(&self) -> Vec<&str> {
        TOOLS.split_whitespace().collect()
    }

    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        permission_args(permissions).map(|_| ())
    }

    fn caution(&self, order: &Order) -> Option<String> {
        trust::caution(order)
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        if order.effort.is_some() {
            return Err(OrderError::Unsupported(
                "gemini has no setting for how hard to think: remove `effort`".to_owned(),
            ));
        }
        trust::refuse_variables(order)?;
        let mut args: Vec<String> = ["-o", "stream-json"].map(str::to_owned).to_vec();
        if !trust::is_trusted(order) {
            args.push(trust::FLAG.to_owned());
        }
        args.extend(flag("--model", order.model.as_ref()));
        args.extend(permission_args(&order.permissions)?);
        args.extend(flag("--resume", order.session.resumed()));
        args.extend(order.args.iter().cloned());

        let prompt = as_text(&order.prompt);
        // What cannot be an argument is written to its standard input. Not always: it waits only half a second for
        // that, and a busy machine may be slower.
        let fits = PROMPT_FLAG.len() + prompt.len() <= Order::LONGEST_ARGUMENT && !prompt.contains('\0');
        let most = LONGEST_INPUT - "\n".len();
        let input = if fits {
            args.push(format!("{PROMPT_FLAG}{prompt}"));
            None
        } else if prompt.len() <= most {
            Some(prompt)
        } else {
            return Err(OrderError::PromptTooLong { bytes: prompt.len(), most });
        };
        let launch = Launch {
            args,
            env: vec![
                // Else the program is the child of one that swallows signals.
                ("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned()),
                trust::variable(order),
            ],
            input: input.is_some(),
        };
        Ok((launch, Box::new(OneWayDialogue::new(input, GeminiOutput::new(order)))))
    }
}

/// A prompt as nothing but text. What begins with a slash would be a command to the program itself, whatever it may do:
/// `/extensions install`; behind a space it is none. What stands behind an `@` would be read, from whatever file,
/// folder or server has that name, or would choose an agent; behind a backslash it is not.
fn as_text(prompt: &str) -> String {
    let mut text = String::with_capacity(prompt.len() + 1);
    if prompt.starts_with('/') {
        text.push(' ');
    }
    for letter in prompt.chars() {
        if letter == '@' && !text.ends_with('\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

fn permission_args(permissions: &Permissions) -> Result<Vec<String>, FieldError> {
    if permissions.default == Permission::Ask {
        return Err(FieldError::new("default", "gemini cannot ask in this form", "write allow or deny"));
    }
    if let Some(rule) = permissions.deny.first() {
        let wrong = format!("gemini cannot be told to deny \"{rule}\" when it starts");
        let right = "write default: deny and allow the tools it may use, write default: ask, or deny it in a policy file \
                     of gemini's own";
        return Err(FieldError::new("deny", wrong, right));
    }
    if permissions.default == Permission::Allow {
        return Ok(vec!["--approval-mode=yolo".to_owned()]);
    }
    let mut args = vec!["--approval-mode=default".to_owned()];
    for rule in &permissions.allow {
        if !is_allowable(rule) {
            let wrong = format!("gemini cannot be told to allow \"{rule}\"");
            return Err(FieldError::new("allow", wrong, "name one tool, or write *, mcp_* or mcp_SERVER_*"));
        }
        args.push(format!("--allowed-tools={rule}"));
    }
    Ok(args)
}

/// Whether a rule means the same to the program as to us. It splits names at commas, takes a part in parentheses for
/// the beginning of a command, and knows stars only in the forms here.
fn is_allowable(rule: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    let server = rule.strip_prefix("mcp_").and_then(|rest| rest.strip_suffix("_*"));
    rule == "*" || rule == "mcp_*" || server.is_some_and(is_name) || is_name(rule)
}
