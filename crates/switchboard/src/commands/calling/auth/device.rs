//! A token by a code that a person types in on a web page, on this device or another one (RFC 8628).

use std::time::Duration;

use serde::Deserialize;
use switchboard_egress::Egress;
use switchboard_host::printer::Printer;
use tokio::time::Instant;

use super::token_server::{self, Granted, TokenServer, safe};
use crate::commands::calling::{Failure, sanitize};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The default and the least polling interval, in seconds.
const USUAL: f64 = 5.0;
const SHORTEST: f64 = 0.2;
/// Added to the interval by `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// The default and the longest lifetime of a code, in seconds.
const LONGEST: f64 = 1_800.0;

#[derive(Deserialize)]
struct Codes {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<f64>,
    interval: Option<f64>,
}

/// Prints the code and polls until the user has approved or denied it.
pub(super) async fn ask(
    server: &TokenServer,
    url: Option<&str>,
    scopes: &[String],
    egress: &Egress,
    printer: Printer,
) -> Result<Granted, Failure> {
    let url = url.ok_or_else(|| Failure::card("the agent's card does not say where codes are had", ""))?;
    let url = safe(url)?;
    let mut form = vec![("client_id", server.client_id.clone())];
    if !scopes.is_empty() {
        form.push(("scope", scopes.join(" ")));
    }
    let codes: Codes = token_server::ask(egress, &url, &form, None).await?.map_err(|denied| denied.failure(&url))?;
    printer.note(&format!(
        "open {} and type in {}",
        sanitize::line(&codes.verification_uri),
        sanitize::line(&codes.user_code)
    ));
    if let Some(complete) = &codes.verification_uri_complete {
        printer.note(&format!("or open {}", sanitize::line(complete)));
    }
    let form =
        [("grant_type", GRANT.to_owned()), ("device_code", codes.device_code), ("client_id", server.client_id.clone())];
    let seconds = |said: Option<f64>, usual: f64| said.filter(|said| said.is_finite()).unwrap_or(usual);
    let mut wait = Duration::from_secs_f64(seconds(codes.interval, USUAL).clamp(SHORTEST, LONGEST));
    let end = Instant::now() + Duration::from_secs_f64(seconds(codes.expires_in, LONGEST).clamp(0.0, LONGEST));
    loop {
        tokio::time::sleep(wait).await;
        let denied = match token_server::ask(egress, &server.url, &form, None).await? {
            Ok(granted) => return Ok(granted),
            Err(denied) => denied,
        };
        match denied.error.as_str() {
            "authorization_pending" if Instant::now() < end => {}
            "slow_down" if Instant::now() < end => wait += SLOWER,
            "authorization_pending" | "slow_down" | "expired_token" => {
                let message = "the code was not typed in before it ran out";
                return Err(Failure::refused_credentials(message, "run it again for another code"));
            }
            _ => return Err(denied.failure(&server.url)),
        }
    }
}
