//! `switchboard auth`: gets a token for an agent whose card asks for OAuth 2, and keeps it for later calls.
//!
//! Two ways are known: a code that a person types in on a web page (RFC 8628), and an id with a secret for programs. The
//! secret is never kept.

mod device;
mod token_server;
mod tokens;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use switchboard_a2a::card::{AgentCard, OAuthFlow, SecurityScheme};
use switchboard_egress::Egress;
use switchboard_host::printer::Printer;

use crate::cli::settings::Settings;
use crate::cli::{AgentWord, CallFlags};
use crate::commands::calling::credential_guard::CredentialGuard;
use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{
    AgentCall, Call, Failure, NoOptions, agent_and_words, run as run_async, sanitize, target,
};
use token_server::safe;
pub(super) use tokens::Token;
use tokens::{TokenFile, Tokens};

const CLIENT_SECRET: &str = "A2ACLI_CLIENT_SECRET";
/// How long before its end a token is no longer used, in seconds.
const MARGIN: u64 = 30;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LoginOptions {
    /// Id under which this program is known to the server that gives tokens
    #[arg(long, value_name = "ID", env = "A2ACLI_CLIENT_ID", hide_env_values = true)]
    client_id: Option<String>,

    /// What the token shall allow; can be repeated. Without it whatever the card lists
    #[arg(long = "scope", value_name = "SCOPE", env = "A2ACLI_SCOPE", hide_env_values = true, value_delimiter = ',')]
    scopes: Vec<String>,

    /// Way to get it: device-code or client-credentials; without it the one that the card has, a code before a secret
    #[arg(
        long,
        value_enum,
        value_name = "WAY",
        hide_possible_values = true,
        env = "A2ACLI_FLOW",
        hide_env_values = true
    )]
    flow: Option<Flow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Flow {
    /// A person types a code in on a web page.
    DeviceCode,
    /// A program shows the secret in A2ACLI_CLIENT_SECRET.
    ClientCredentials,
}

impl Flow {
    fn as_str(self) -> &'static str {
        match self {
            Self::DeviceCode => "device-code",
            Self::ClientCredentials => "client-credentials",
        }
    }
}

pub(crate) async fn login(call: AgentCall<'_>, []: [String; 0], options: LoginOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let Some(client_id) = options.client_id.clone() else {
        let next = "write --client-id with the id that the server which gives tokens has for you";
        return Err(Failure::usage("it is not said who asks for the token", next));
    };
    let found = call.ask(call.client.card(&call.context)).await?;
    let (flow, way) = choose(&found.card, options.flow)?;
    let scopes = match options.scopes.as_slice() {
        [] => way.scopes.iter().map(|(name, _)| name.clone()).collect(),
        scopes => scopes.to_vec(),
    };
    let token_url = safe(way.token_url.as_deref(), "tokens")?;
    let address = call.address()?;
    let of_card = if found.url.starts_with("http") { &found.url } else { &address };
    for url in [Some(&token_url), way.device_authorization_url.as_ref()].into_iter().flatten() {
        if !call.client.peer().trust_card_url && !token_server::is_same_host(url, of_card) {
            return Err(another_host(url, of_card));
        }
    }
    printer.note(&format!("token server: {}", sanitize::line(&token_url)));
    let token = Token {
        agent: tokens::base(&found.url, &address),
        flow,
        token_url,
        client_id,
        scopes,
        access_token: String::new(),
        refresh_token: None,
        expires_at: None,
    };
    let granted = match flow {
        Flow::DeviceCode => {
            device::grant(&token, way.device_authorization_url.as_deref(), &call.egress, printer).await?
        }
        Flow::ClientCredentials => token.with_secret(&call.egress, &secret(call.flags)?).await?,
    };
    let token = token.renewed(granted, now());
    let file = TokenFile::open().await?.keep(token.clone())?;
    if printer.is_json() {
        let (agent, flow, scopes) = (&token.agent, token.flow, &token.scopes);
        printer.json(
            &json!({ "agent": agent, "flow": flow, "scopes": scopes, "expiresIn": token.lives(now()), "file": file }),
        );
    } else {
        let output = TaskPrinter { printer, is_verbose: false };
        output.field("agent", &token.agent);
        output.field("flow", flow.as_str());
        output.field("scopes", &token.scopes.join(" "));
        output.field("expires-in", &token.lives(now()).map_or("not said".to_owned(), |seconds| format!("{seconds}s")));
        output.field("file", &file.display().to_string());
    }
    Ok(())
}

/// Opens no call: that would renew a token first which has run out.
pub(crate) fn logout(call: Call<AgentWord, NoOptions>, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let (agent, []) = agent_and_words(call.words.into(), &call.flags, [])?;
        let address = target::find(&agent, &call.flags.workspace).await?.peer.address();
        let address = address.map_err(|error| Failure::usage(error.to_string(), super::WRITE_A_URL))?;
        let forgotten = TokenFile::open().await?.forget(&address)?;
        match (printer.is_json(), &forgotten) {
            (true, agent) => printer.json(&json!({ "forgotten": agent })),
            (false, Some(agent)) => printer.line(format!("forgotten: {agent}")),
            (false, None) => printer.warning("there is no token for this agent"),
        }
        Ok(())
    })
}

/// The token that is kept for an agent, renewed if it has run out.
pub(super) async fn kept(
    address: &str,
    egress: &Egress,
    flags: &CallFlags,
    guard: &CredentialGuard,
) -> Result<Option<Token>, Failure> {
    let is_good = |token: &Token| token.lives(now()).is_none_or(|seconds| seconds > MARGIN);
    let Some(token) = Tokens::load()?.find(address) else { return Ok(None) };
    guard.stored("the token of auth login")?;
    if is_good(&token) {
        return Ok(Some(token));
    }
    // Renewed under the file lock: many servers accept a refresh token only once.
    let file = TokenFile::open().await?;
    let token = match Tokens::load()?.find(address) {
        None => return Ok(None),
        Some(renewed) if is_good(&renewed) => return Ok(Some(renewed)),
        Some(token) => token,
    };
    safe(Some(&token.token_url), "tokens")?;
    let granted = match (&token.refresh_token, token.flow) {
        (Some(refresh), _) => token.with_refresh_token(egress, refresh).await?,
        (None, Flow::ClientCredentials) => token.with_secret(egress, &secret(flags)?).await?,
        (None, Flow::DeviceCode) => return Err(Failure::token_is_over(&token.agent)),
    };
    let token = token.renewed(granted, now());
    file.keep(token.clone())?;
    Ok(Some(token))
}

/// A card that names a token server on another host, which would get the client secret.
fn another_host(url: &str, card: &str) -> Failure {
    let message =
        format!("the card at {} names another host to get tokens from: {}", sanitize::line(card), sanitize::line(url));
    Failure::usage(message, "if that is where your tokens come from, run it again with --trust-card-url")
}

/// What the card offers that can be done here.
fn choose(card: &AgentCard, requested: Option<Flow>) -> Result<(Flow, OAuthFlow), Failure> {
    let mut offered = Vec::new();
    for (_, scheme) in &card.security_schemes {
        let SecurityScheme::OAuth2 { flows, .. } = scheme else { continue };
        offered.extend(flows.device_code.clone().map(|flow| (Flow::DeviceCode, flow)));
        offered.extend(flows.client_credentials.clone().map(|flow| (Flow::ClientCredentials, flow)));
    }
    offered.sort_by_key(|(flow, _)| *flow == Flow::ClientCredentials);
    let names: Vec<&str> = offered.iter().map(|(flow, _)| flow.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let found = offered.into_iter().find(|(flow, _)| requested.is_none_or(|requested| requested == *flow));
    found.ok_or_else(|| {
        let wanted = requested.map_or("a way to get a token by code or by secret", Flow::as_str);
        let message = format!("the agent's card does not offer {wanted} (OAuth 2 flows that can be used: {names})");
        Failure::card(message, "get a token from the agent's operator, and put it into A2ACLI_BEARER")
    })
}

fn secret(flags: &CallFlags) -> Result<String, Failure> {
    let set = Settings::load(flags.config.as_deref())?.value(CLIENT_SECRET).map(|(secret, _)| secret);
    set.ok_or_else(|| Failure::no_credentials(format!("{CLIENT_SECRET} is not set"), "set it to the client's secret"))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
