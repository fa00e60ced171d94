//! The landing page, for people who open an A2A address in a browser: what this is, which agents there are, where the
//! cards are.

use std::fmt::Write;

use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, VARY};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use switchboard_engine::{Address, Caller};

use super::json_response;
use crate::{Body, CallerIdentity, State};

/// Whether a browser requests a page.
pub(super) fn is_wanted(method: &Method, headers: &HeaderMap) -> bool {
    let accepts = |value: &HeaderValue| value.as_bytes().windows(9).any(|word| word.eq_ignore_ascii_case(b"text/html"));
    method == Method::GET && headers.get_all(ACCEPT).iter().any(accepts)
}

pub(super) fn page(state: &State, identity: &CallerIdentity) -> Response<Body> {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Switchboard</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <style>body{font:16px/1.5 sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}</style></head><body>\
         <h1>Switchboard</h1><p>This address speaks A2A, the protocol by which agents call each other. \
         Programs send messages here; for people there is this page.</p><h2>Agents</h2><ul>",
    );
    let agents = state.engine.directory().agents();
    let own: Vec<_> = agents.iter().filter(|hosted| identity.caller.scopes.agents.allows(&hosted.name)).collect();
    if own.is_empty() && !agents.is_empty() {
        html.push_str("<li>Shown to callers with a key.</li>");
    }
    for hosted in own {
        let served = hosted.served();
        let (name, description) = (escape(hosted.name.as_str()), escape(&served.manifest.description));
        // Writing to a string does not fail.
        let _ = write!(
            html,
            "<li><b>{name}</b>: {description} \
             (<a href=\"/a2a/{name}/.well-known/agent-card.json\">card</a>, JSON-RPC at <code>POST /a2a/{name}</code>)</li>"
        );
    }
    html.push_str("</ul><p>");
    if state.engine.directory().resolve(&Address::Root, &Caller::local(), None).is_ok() {
        html.push_str(
            "The card of this address: <a href=\"/.well-known/agent-card.json\">/.well-known/agent-card.json</a>. ",
        );
    }
    html.push_str(
        "Health: <a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a>. \
         The protocol: <a href=\"https://a2a-protocol.org\">a2a-protocol.org</a>.</p></body></html>\n",
    );
    let mut response = json_response::body(StatusCode::OK, "text/html; charset=utf-8", html);
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

fn escape(text: &str) -> String {
    // The ampersand first: the others become one.
    let escapes = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")];
    escapes.into_iter().fold(text.to_owned(), |text, (character, escaped)| text.replace(character, escaped))
}
