//! What went wrong with a call, for people and for programs: the one place that knows exit codes and code words.
//!
//! Exit codes: 1 failed, 2 typed wrongly, 3 the agent or its card cannot be reached, 4 credentials, 5 time is over. What
//! the protocol has a name for is called by that name; everything else has a word of its own.

use std::process::ExitCode;

use serde::Serialize;
use switchboard_a2a::card::{AgentCard, SecurityScheme};
use switchboard_a2a::{ErrorKind, TaskId};
use switchboard_client::{CardAttempt, ClientError};
use switchboard_egress::{SendError, TlsError};
use switchboard_host::printer::Printer;

use crate::commands::calling::identity::{API_KEY, BEARER, Identity};
use crate::commands::calling::{Call, WRITE_A_URL, sanitize};

const CARD_NOT_FOUND: &str = "A2ACLI_ERR_CARD_NOT_FOUND";
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;
const CREDENTIALS: u8 = 4;
const TIMEOUT: u8 = 5;

/// Why a command that calls an agent could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: u8,
    code: String,
    message: String,
    hint: String,
    a2a_code: Option<i64>,
}

impl Failure {
    fn new(exit: u8, code: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), hint: hint.into(), a2a_code: None }
    }

    /// It was typed wrongly.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, "A2ACLI_ERR_USAGE", message, hint)
    }

    /// The server here does not do it. Without a code of its own it is told from the others by its message.
    pub(crate) fn at_control_socket(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FAILED, if code.is_empty() { "SWITCHBOARD_ERR_REFUSED" } else { code }, message, hint)
    }

    /// There is no such agent.
    pub(super) fn no_agent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, CARD_NOT_FOUND, message, hint)
    }

    /// Nobody is there to be asked.
    pub(super) fn unreachable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, "A2ACLI_ERR_UNREACHABLE", message, hint)
    }

    /// A card that cannot be used.
    pub(super) fn card(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FAILED, "A2ACLI_ERR_CARD_INVALID", message, hint)
    }

    /// Credentials that are not there.
    pub(super) fn no_credentials(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(CREDENTIALS, "A2ACLI_ERR_CREDENTIALS_MISSING", message, hint)
    }

    /// Credentials that were not taken.
    pub(super) fn refused_credentials(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(CREDENTIALS, "A2ACLI_ERR_AUTH_FAILED", message, hint)
    }

    /// A token that cannot be renewed.
    pub(super) fn token_is_over(agent: &str) -> Self {
        let hint = format!("switchboard auth login {}", sanitize::shell_word(agent));
        Self::no_credentials(format!("the token for {} has run out", sanitize::line(agent)), hint)
    }

    /// Something on this side.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(FAILED, "A2ACLI_ERR_INTERNAL", message, "")
    }

    /// The same with what to do about it.
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The same for an id that the agent does not take: what it says of it in full is to be had.
    pub(super) fn pointing_at_debug(mut self) -> Self {
        if self.a2a_code.is_some() {
            let comma = if self.hint.is_empty() { "" } else { "; " };
            self.hint.push_str(&format!("{comma}--debug shows what the agent said in full"));
        }
        self
    }

    /// The same for a task that is known, wherever it stands: it is named, with the command to look after it.
    pub(super) fn about(mut self, task: &TaskId, call: &Call) -> Self {
        let id = sanitize::shell_word(task.as_str());
        if !self.message.contains(task.as_str()) {
            self.message.push_str(&format!("; task {id} may still be at work"));
        }
        if !self.hint.contains(&id) {
            let next = call.command("task get", &id);
            self.hint = match self.exit {
                // Without credentials there is nothing to be looked at.
                CREDENTIALS => format!("{}; then {next}", self.hint),
                _ => next,
            };
        }
        self
    }

    /// Whether the agent has refused because there is no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        self.a2a_code == Some(i64::from(ErrorKind::TaskNotFound.entry().code))
    }

    /// Whether there is no such agent there.
    pub(super) fn is_no_agent(&self) -> bool {
        self.code == CARD_NOT_FOUND
    }

    /// What went wrong.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What a call came to; the agent's card says which credentials it wants.
    pub(super) fn of_call(error: &ClientError, call: &Call, card: Option<&AgentCard>) -> Self {
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
                Self::new(FAILED, ErrorName(ErrorKind::InvalidAgentResponse).to_string(), message, hint)
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

    fn no_card(message: String, places: &[CardAttempt], call: &Call) -> Self {
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

    fn credentials(message: String, call: &Call, card: Option<&AgentCard>) -> Self {
        let mut hint = match &call.identity {
            Identity::Named(name) => format!("put credentials that are good into {name}"),
            Identity::Typed => "check --bearer, --api-key and --header".to_owned(),
            Identity::Token(_) => call.command("auth login", ""),
            Identity::Nobody => wanted(card, call),
        };
        if call.is_local {
            hint.push_str(&format!("; switchboard keys create{} makes a key for this server", call.data_flags));
        }
        match call.identity {
            Identity::Nobody => Self::no_credentials(message, hint),
            _ => Self::refused_credentials(message, hint),
        }
    }

    fn refused(kind: ErrorKind, message: &str, call: &Call, card: Option<&AgentCard>) -> Self {
        let hint = match kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => {
                return Self::credentials(message.to_owned(), call, card);
            }
            ErrorKind::TaskNotFound => call.command("task list", ""),
            ErrorKind::PushNotSupported => call.command("task subscribe", "ID"),
            ErrorKind::VersionNotSupported => "leave out --a2a-version".to_owned(),
            ErrorKind::Overloaded => "try again in a moment".to_owned(),
            _ => String::new(),
        };
        let message = match message.is_empty() {
            true => kind.entry().message,
            false => message,
        };
        Self::new(FAILED, ErrorName(kind).to_string(), format!("the agent refused: {message}"), hint)
    }

    /// Tells it, and turns it into the exit code.
    #[must_use]
    pub(crate) fn print(&self, printer: Printer) -> ExitCode {
        let Self { code, message, hint, a2a_code, .. } = self;
        let (message, hint) = (&sanitize::redact_passwords(message), &sanitize::redact_passwords(hint));
        if printer.is_json() {
            let hint = (!hint.is_empty()).then_some(hint.as_str());
            // One line, so that it can end a stream of lines.
            printer.json_line(&Envelope { error: Told { code, message, hint, a2a_code: *a2a_code } });
        } else {
            printer.error(&sanitize::line(message), hint);
        }
        ExitCode::from(self.exit)
    }
}

/// A failure as programs read it.
#[derive(Serialize)]
struct Envelope<'a> {
    error: Told<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    a2a_code: Option<i64>,
}

/// What to do where there is no encrypted connection.
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

/// What the agent's card asks for, as something to do.
fn wanted(card: Option<&AgentCard>, call: &Call) -> String {
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

/// An error of the protocol by its name, one of ours by a word that nobody takes for that.
struct ErrorName(ErrorKind);

impl std::fmt::Display for ErrorName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self.0 {
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
            other => return write!(formatter, "SWITCHBOARD_ERR_{}", other.entry().reason),
        })
    }
}
