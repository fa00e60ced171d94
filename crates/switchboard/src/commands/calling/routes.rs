//! `switchboard routes`: what is done for events, what is owed, and routes that are registered with the server.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod show;

use serde_json::Value;
use switchboard_host::config::suggestion::nearest;

use super::hub_client::{HubClient, HubError};
use super::{Failure, figures, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamedRoute {
    /// Name of the route, as the list shows it
    name: String,
}

/// Every route.
async fn all(hub: &HubClient) -> Result<Vec<Value>, HubError> {
    let (mut routes, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let mut url = hub.url(&["api", "routes"]);
        url.query_pairs_mut().append_pair("pageSize", "100");
        if let Some(after) = &after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let mut page = hub.call(http::Method::GET, url, None).await?;
        let Value::Array(items) = page["items"].take() else { return Ok(routes) };
        let is_empty = items.is_empty();
        routes.extend(items);
        let next = page["next"].as_str().map(str::to_owned);
        // A page that leads nowhere is the last one.
        if next.is_none() || is_empty || next == after {
            return Ok(routes);
        }
        after = next;
    }
}

/// How a route is doing, in a word.
fn state(route: &Value) -> &'static str {
    match route {
        route if route["enabled"] == false => "disabled",
        route if route["paused"] == true => "paused",
        route if route["failing"] == true => "failing",
        _ => "active",
    }
}

/// What a route is about.
fn when(route: &Value) -> String {
    let when = &route["when"];
    let narrowed =
        ["agent", "state"].into_iter().filter_map(|member| Some(format!("{member} {}", when[member].as_str()?)));
    let words: Vec<String> = when["topic"].as_str().map(str::to_owned).into_iter().chain(narrowed).collect();
    sanitize::line(&words.join(", "))
}

/// What a route does.
fn then(route: &Value) -> String {
    let then = &route["then"];
    if then["url"].is_string() {
        return format!("POST {}", figures::text(&then["url"]));
    }
    let targets = match &then["targets"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    };
    let skill = then["skill"].as_str().map(|skill| format!("skill {skill}"));
    let to = (!targets.is_empty()).then(|| format!("to {targets}"));
    sanitize::line(&skill.into_iter().chain(to).collect::<Vec<_>>().join(" "))
}

/// The failure of a command about one route. A name that is not known gets the nearest one that is.
async fn failed(hub: &HubClient, name: &str, error: HubError) -> Failure {
    let next = match &error {
        error if error.is_code("NOT_FOUND") => {
            let known = all(hub).await.unwrap_or_default();
            let names = known.iter().filter_map(|route| route["name"].as_str());
            match nearest(name, names) {
                Some(meant) => format!("did you mean {}?", sanitize::line(meant)),
                None => hub.command("routes list", ""),
            }
        }
        error if error.is_code("IN_FILE") => "change its file; the server follows it".to_owned(),
        error if error.is_code("EXISTS") => "--replace takes the place of the one that is there".to_owned(),
        _ => String::new(),
    };
    error.failure_with(hub, &next)
}
