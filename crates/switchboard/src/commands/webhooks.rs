//! `switchboard webhooks`: what operators see of webhooks and do with them, beside a running server or on its data alone.

pub(crate) mod dead_letters;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod retry;
pub(crate) mod secret;
pub(crate) mod show;

use switchboard_a2a::Timestamp;
use switchboard_webhooks::DeliveryView;

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

fn outcome(delivery: &DeliveryView) -> String {
    match (delivery.problem.as_str(), delivery.status) {
        ("", Some(status)) => status.to_string(),
        ("", None) => "-".to_owned(),
        (problem, _) => problem.to_owned(),
    }
}
