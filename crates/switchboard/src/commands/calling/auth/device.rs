//! A token by a code that a person types in on a web page, on this device or another one (RFC 8628).

use std::time::Duration;

use serde::Deserialize;
use switchboard_client::token_request::{Granted, TokenError, TokenRequest, seconds};
use switchboard_egress::Egress;
use switchboard_host::printer::Printer;
use tokio::time::Instant;

use super::Token;
use super::token_server::{ask, failed, safe};
use crate::commands::calling::{Failure, sanitize};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The default and the least polling interval.
const USUAL: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(200);
/// Added to the interval by `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// The default and the longest lifetime of a code.
const LONGEST: Duration = Duration::from_secs(1_800);

#[derive(Deserialize)]
struct Codes {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<Duration>,
    #[serde(default, deserialize_with = "seconds")]
    interval: Option<Duration>,
}

/// Prints the code and polls until the user has approved or denied it.
pub(super) async fn grant(
    token: &Token,
    url: Option<&str>,
    egress: &Egress,
    printer: Printer,
) -> Result<Granted, Failure> {
    let url = safe(url, "codes")?;
    let form = [("client_id", token.client_id.as_str())];
    let codes: Codes =
        ask(egress, TokenRequest { url: &url, form: &form, scopes: &token.scopes, client: None }).await?;
    printer.note(&format!(
        "open {} and type in {}",
        sanitize::line(&codes.verification_uri),
        sanitize::line(&codes.user_code)
    ));
    if let Some(complete) = &codes.verification_uri_complete {
        printer.note(&format!("or open {}", sanitize::line(complete)));
    }
    let form =
        [("grant_type", GRANT), ("device_code", codes.device_code.as_str()), ("client_id", token.client_id.as_str())];
    let request = TokenRequest { url: &token.token_url, form: &form, scopes: &[], client: None };
    let mut wait = codes.interval.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
    let end = Instant::now() + codes.expires_in.map_or(LONGEST, |lifetime| lifetime.min(LONGEST));
    loop {
        tokio::time::sleep(wait).await;
        let error = match request.send(egress).await {
            Ok(granted) => return Ok(granted),
            Err(error) => error,
        };
        let code = match &error {
            TokenError::Denied { denied: Some(denied), .. } => denied.error.as_str(),
            _ => "",
        };
        match code {
            "authorization_pending" if Instant::now() < end => {}
            "slow_down" if Instant::now() < end => wait += SLOWER,
            "authorization_pending" | "slow_down" | "expired_token" => {
                let message = "the code was not typed in before it ran out";
                return Err(Failure::refused_credentials(message, "run it again for another code"));
            }
            _ => return Err(failed(&token.token_url, error)),
        }
    }
}
