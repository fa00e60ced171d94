//! The POST of a route: events in their order, or with content of its own one body for each event. It is signed like a
//! webhook's delivery: with the secret that the route names, else with that of its owner's webhooks.

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::CallerId;
use switchboard_webhooks::{PostAttempt, PostOutcome, Secret, SignedPost};

use super::Routes;
use super::content::values;
use super::message::handed_on;
use super::table::Route;
use crate::feed::Item;

/// The largest body without content, one item excepted.
const BODY_BYTES: usize = 1 << 20;

/// How many of the items fit into one body; one does in any case.
pub(super) fn fitting(items: &[Item]) -> usize {
    let mut bytes = 0;
    let fits = |item: &&Item| {
        bytes += item.bytes();
        bytes <= BODY_BYTES
    };
    items.iter().take_while(fits).count().max(items.len().min(1))
}

impl Routes {
    /// Events of one POST at most. Content of its own is about one.
    pub(super) fn most_at_once(&self, route: &Route) -> usize {
        if route.definition.content.is_some() { 1 } else { self.parts.config.hub.routes.batch.get() }
    }

    /// Makes one attempt to POST items.
    pub(super) async fn post(
        &self,
        route: &Route,
        (url, secret_env): (&str, Option<&str>),
        owner: &CallerId,
        items: &[Item],
    ) -> PostAttempt {
        let refused = |problem: String| PostAttempt { outcome: PostOutcome::Refused, status: None, problem };
        let now = self.parts.clock.now();
        let secrets = match secret_env {
            None => self.posts.secrets_of(owner, now).await.map_err(|error| error.to_string()),
            Some(variable) => secret(variable).map(|secret| vec![secret]),
        };
        let secrets = match secrets {
            Ok(secrets) => secrets,
            // It may be there when it is looked for again.
            Err(problem) => {
                return PostAttempt { outcome: PostOutcome::Retry { after: None }, status: None, problem };
            }
        };
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return refused("nothing to send".into()) };
        let name = &route.definition.name;
        let most = self.parts.config.hub.routes.content.length();
        let (id, body) = match &route.definition.content {
            Some(content) => {
                let body = content.render(&values(name, &handed_on(first, most)), most);
                (format!("{name}:{}", first.id), body)
            }
            None => {
                let handed: Vec<Item> = items.iter().map(|item| handed_on(item, most)).collect();
                (format!("{name}:{}:{}", first.id, last.id), json!({ "route": name, "items": handed }))
            }
        };
        let post = SignedPost { url: url.to_owned(), id, body: Bytes::from(body.to_string()), secrets };
        self.posts.send(&post, now).await
    }
}

/// The signing secret in a variable.
fn secret(variable: &str) -> Result<Secret, String> {
    let text = std::env::var(variable).map_err(|_| format!("the variable {variable} is not set"))?;
    let problem = || format!("the variable {variable} holds no signing secret: whsec_ and its bytes in base64");
    Secret::parse(text.trim()).ok_or_else(problem)
}
