//! Failures of a call, as text or JSON: the one file that maps errors to exit codes and error codes.
//!
//! Exit codes: 1 failed, 2 usage, 3 the agent or its card cannot be reached, 4 credentials, 5 timeout. Errors of the
//! protocol keep their names; all others have a code of this program.

use std::process::ExitCode;

use serde_json::json;
use switchboard_a2a::card::{AgentCard, SecurityScheme};
use switchboard_a2a::{ErrorKind, TaskId};
use switchboard_client::{CardAttempt, ClientError};
use switchboard_egress::{SendError, TimeoutPhase, TlsError};
use switchboard_host::printer::Printer;

use crate::commands::calling::caller_identity::{API_KEY, BEARER, CallerIdentity};
use crate::commands::calling::{AgentCall, WRITE_A_URL, sanitize};

const CARD_NOT_FOUND: &str = "A2ACLI_ERR_CARD_NOT_FOUND";
const AGENT_UNREACHABLE: &str = "SWITCHBOARD_ERR_UNREACHABLE";
pub(super) const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;
const CREDENTIALS: u8 = 4;
const TIMEOUT: u8 = 5;

/// Why a command that calls an agent could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: u8,
    code: String,
    pub(super) message: String,
    hint: String,
    a2a_code: Option<i64>,
}

impl Failure {
    fn new(exit: u8, code: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), hint: hint.into(), a2a_code: None }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, "A2ACLI_ERR_USAGE", message, hint)
    }

    /// A refusal of the server, at its control socket or its hub; `code` may be empty.
    pub(crate) fn by_server(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        // The server was reached, and the agent that it was to call was not.
        let exit = if code == AGENT_UNREACHABLE { UNREACHABLE } else { FAILED };
        Self::new(exit, if code.is_empty() { "SWITCHBOARD_ERR_REFUSED" } else { code }, message, hint)
    }

    pub(super) fn no_agent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, CARD_NOT_FOUND, message, hint)
    }

    pub(super) fn unreachable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, "A2ACLI_ERR_UNREACHABLE", message, hint)
    }

    pub(super) fn card(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FAILED, "A2ACLI_ERR_CARD_INVALID", message, hint)
    }

    pub(super) fn no_credentials(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(CREDENTIALS, "A2ACLI_ERR_CREDENTIALS_MISSING", message, hint)
    }

    pub(super) fn refused_credentials(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(CREDENTIALS, "A2ACLI_ERR_AUTH_FAILED", message, hint)
    }

    /// An expired token that cannot be renewed.
    pub(super) fn token_is_over(agent: &str) -> Self {
        let hint = format!("switchboard auth login {}", sanitize::shell_word(agent));
        Self::no_credentials(format!("the token for {} has run out", sanitize::line(agent)), hint)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(FAILED, "A2ACLI_ERR_INTERNAL", message, "")
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// An exit code for what has been said already.
    pub(super) fn silent(exit: u8) -> Self {
        Self::new(exit, "", "", "")
    }

    /// The same once it was printed elsewhere.
    pub(super) fn printed(self, printer: Printer) -> Self {
        let _ = self.print(printer);
        Self::silent(self.exit)
    }

    /// Points at `--debug` if the agent refused an id, because it shows the whole reply.
    pub(super) fn pointing_at_debug(mut self) -> Self {
        if self.a2a_code.is_some() {
            let comma = if self.hint.is_empty() { "" } else { "; " };
            self.hint.push_str(&format!("{comma}--debug shows what the agent said in full"));
        }
        self
    }

    /// Adds the task's id, and the command that shows it, to a failure while following it.
    pub(super) fn about(mut self, task: &TaskId, call: &AgentCall<'_>) -> Self {
        let id = sanitize::shell_word(task.as_str());
        if !self.message.contains(task.as_str()) {
            self.message.push_str(&format!("; task {id} may still be running"));
        }
        if !self.hint.contains(&id) {
            let next = call.command("task get", &id);
            self.hint = match self.exit {
                // The task cannot be read without credentials.
                CREDENTIALS => format!("{}; then {next}", self.hint),
                _ => next,
            };
        }
        self
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.a2a_code == Some(i64::from(ErrorKind::TaskNotFound.entry().code))
    }

    pub(super) fn is_no_agent(&self) -> bool {
        self.code == CARD_NOT_FOUND
    }

    /// The failure for a client error; the card names the credentials that the agent accepts.
    pub(super) fn of_call(error: &ClientError, call: &AgentCall<'_>, card: Option<&AgentCard>) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Invalid { .. } => Self::new(USAGE, "A2ACLI_ERR_USAGE", message, ""),
            ClientError::Address { .. } => Self::usage(message, WRITE_A_URL),
            ClientError::NoCard(places) => Self::no_card(message, places, call),
            ClientError::NoInterface { .. } => {
                let hint = "leave out --transport and --a2a-version, or call an agent that offers them";
                Self::new(FAILED, "A2ACLI_ERR_CARD_INVALID", message, hint)
            }
            ClientError::Unreachable { error: SendError::Tls(fault), .. } => {
                Self::unreachable(message, not_trusted(*fault))
            }
            ClientError::Unreachable { .. } => {
                Self::unreachable(message, "check the address, and whether the agent runs")
            }
            ClientError::Lost { .. } => {
                Self::unreachable(message, "the agent may have done it; look before trying again")
            }
            ClientError::Timeout { task, .. } => {
                let hint = match task {
                    Some(task) => call.command("task get", &format!("--wait {}", sanitize::shell_word(task.as_str()))),
                    None => "give it more time with --timeout".to_owned(),
                };
                Self::new(TIMEOUT, "A2ACLI_ERR_TIMEOUT", message, hint)
            }
            ClientError::Secret(_) => Self::no_credentials(message, "set it, and run the command again"),
            ClientError::Credentials { .. } => Self::credentials(message, call, card),
            ClientError::Agent(error) => {
                let refused = Self::refused(error.kind, &error.message, call, card);
                Self { a2a_code: Some(error.code()), ..refused }
            }
            ClientError::NotA2a { status, .. } => {
                let hint = match status {
                    429 | 503 => "the agent is busy: try again in a while",
                    _ => "check the address: it must be an agent's base, card or endpoint",
                };
                Self::new(FAILED, error_name(ErrorKind::InvalidAgentResponse), message, hint)
            }
            ClientError::Gap(gap) => {
                let hint = call.command("task get", &sanitize::shell_word(gap.task.as_str()));
                Self::new(FAILED, "SWITCHBOARD_ERR_GAP", message, hint)
            }
            ClientError::TaskTooLarge { task, .. } => {
                Self::internal(message).with_hint(call.command("task cancel", &sanitize::shell_word(task.as_str())))
            }
            _ => Self::internal(message),
        }
    }

    /// The failure of a request to the hub of a server that got no answer.
    pub(super) fn of_server(error: &SendError, base: &str) -> Self {
        let message = format!("{base} cannot be reached: {error}");
        match error {
            SendError::Tls(fault) => Self::unreachable(message, not_trusted(*fault)),
            SendError::Timeout { phase: TimeoutPhase::Response } => {
                Self::new(TIMEOUT, "A2ACLI_ERR_TIMEOUT", message, "give it more time with --timeout")
            }
            _ => Self::unreachable(message, "check the address, and whether the server runs"),
        }
    }

    fn no_card(message: String, places: &[CardAttempt], call: &AgentCall<'_>) -> Self {
        if places.iter().any(|place| matches!(place.status, Some(401 | 403))) {
            return Self::credentials(message, call, None);
        }
        if let Some(moved) = places.iter().find_map(|place| place.location.as_deref()) {
            return Self::no_agent(message, format!("it has moved to {}: use that", sanitize::shell_word(moved)));
        }
        if places.iter().any(|place| place.is_json) {
            let hint = "check the address: what is there is JSON, and not a card that can be read";
            return Self::card(message, hint);
        }
        let hint = match places.iter().all(|place| place.status == Some(404)) {
            true => "check the address: its card must be at /.well-known/agent-card.json",
            false => "check the address: something answers there that is no agent",
        };
        Self::no_agent(message, hint)
    }

    fn credentials(message: String, call: &AgentCall<'_>, card: Option<&AgentCard>) -> Self {
        let mut hint = match &call.identity {
            CallerIdentity::Named(name) => format!("put credentials that are good into {name}"),
            CallerIdentity::Typed => "check --bearer, --api-key and --header".to_owned(),
            CallerIdentity::Token(_) => call.command("auth login", ""),
            CallerIdentity::Anonymous => wanted(card, call),
        };
        if call.is_local {
            hint.push_str(&format!(
                "; switchboard keys create{} makes a key for this server",
                call.flags.workspace.again()
            ));
        }
        match call.identity {
            CallerIdentity::Anonymous => Self::no_credentials(message, hint),
            _ => Self::refused_credentials(message, hint),
        }
    }

    fn refused(kind: ErrorKind, message: &str, call: &AgentCall<'_>, card: Option<&AgentCard>) -> Self {
        let hint = match kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => {
                return Self::credentials(message.to_owned(), call, card);
            }
            ErrorKind::TaskNotFound => call.command("task list", ""),
            ErrorKind::PushNotSupported => call.command("task subscribe", "ID"),
            ErrorKind::VersionNotSupported => "leave out --a2a-version".to_owned(),
            ErrorKind::Overloaded | ErrorKind::Cooldown => "try again in a moment".to_owned(),
            _ => String::new(),
        };
        let message = match message.is_empty() {
            true => kind.entry().message,
            false => message,
        };
        Self::new(FAILED, error_name(kind), format!("the agent refused: {message}"), hint)
    }

    pub(crate) fn print(&self, printer: Printer) -> ExitCode {
        let Self { exit, code, message, hint, a2a_code } = self;
        if code.is_empty() {
            return ExitCode::from(*exit);
        }
        let (message, hint) = (&sanitize::redact_passwords(message), &sanitize::redact_passwords(hint));
        if printer.is_json() {
            let hint = (!hint.is_empty()).then_some(hint);
            // One line, so that it can end a stream of lines.
            printer.json_line(
                &json!({ "error": { "code": code, "message": message, "hint": hint, "a2aCode": a2a_code } }),
            );
        } else {
            printer.error(&sanitize::line(message), hint);
        }
        ExitCode::from(*exit)
    }
}

fn not_trusted(fault: TlsError) -> &'static str {
    match fault {
        TlsError::SelfSigned => {
            "if it is the server that you mean, get its certificate from its operator and name the file with --ca FILE"
        }
        TlsError::Untrusted => {
            "if it is the server that you mean, name the certificate of the authority that signed its own with --ca FILE, or \
             in SSL_CERT_FILE"
        }
        TlsError::WrongHost => "write the host name in the URL that the certificate is for",
        TlsError::Expired => "its operator has to renew it",
        TlsError::NotYetValid => "set the clock of this machine, or ask the operator of the server",
        TlsError::NotAccepted => "set tls.cert and tls.key for the agent in agents.yaml",
        TlsError::NoRoots => "name a file of certificates to trust with --ca FILE",
        TlsError::Handshake => "check the port, and write http:// if the server does not speak TLS",
        _ => "ask the operator of the server for a valid certificate",
    }
}

/// The hint that names the credentials of the agent's card.
fn wanted(card: Option<&AgentCard>, call: &AgentCall<'_>) -> String {
    let schemes = card.map(|card| card.security_schemes.as_slice()).unwrap_or_default();
    let ways: Vec<String> = schemes
        .iter()
        .filter_map(|(_, scheme)| match scheme {
            SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => {
                Some(format!("set {BEARER} to a token"))
            }
            SecurityScheme::ApiKey { .. } => Some(format!("set {API_KEY} to a key")),
            SecurityScheme::OAuth2 { .. } => Some(call.command("auth login", "--client-id ID")),
            _ => None,
        })
        .collect();
    match ways.as_slice() {
        [] => format!("set {BEARER} or {API_KEY} in the environment to what the agent wants"),
        ways => ways.join(", or "),
    }
}

/// The code of an error kind: its name in the protocol, or one with the prefix of this program.
fn error_name(kind: ErrorKind) -> String {
    let name = match kind {
        ErrorKind::Parse => "JSONParseError",
        ErrorKind::InvalidRequest => "InvalidRequestError",
        ErrorKind::MethodNotFound => "MethodNotFoundError",
        ErrorKind::InvalidParams => "InvalidParamsError",
        ErrorKind::Internal => "InternalError",
        ErrorKind::TaskNotFound => "TaskNotFoundError",
        ErrorKind::TaskNotCancelable => "TaskNotCancelableError",
        ErrorKind::PushNotSupported => "PushNotificationNotSupportedError",
        ErrorKind::UnsupportedOperation => "UnsupportedOperationError",
        ErrorKind::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        ErrorKind::InvalidAgentResponse => "InvalidAgentResponseError",
        ErrorKind::ExtendedCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
        ErrorKind::ExtensionRequired => "ExtensionSupportRequiredError",
        ErrorKind::VersionNotSupported => "VersionNotSupportedError",
        other => return format!("SWITCHBOARD_ERR_{}", other.entry().reason),
    };
    name.to_owned()
}
