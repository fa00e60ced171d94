//! The names of this crate's metrics, and what each of them says.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Webhooks that were not told everything yet.
pub const BACKLOG: &str = "a2a_webhook_backlog";
/// Deliveries that were given up and are kept.
pub const DEAD_LETTERS: &str = "a2a_webhook_dead_letters";
/// Attempts by outcome.
pub const ATTEMPTS: &str = "a2a_webhook_attempts_total";
/// How long attempts take.
pub const ATTEMPT_SECONDS: &str = "a2a_webhook_attempt_duration_seconds";
/// Since when the webhook that is furthest behind is so.
pub const OLDEST_SECONDS: &str = "a2a_webhook_oldest_undelivered_seconds";
/// Endpoints that are paused because they keep failing.
pub const PAUSED_ENDPOINTS: &str = "a2a_webhook_paused_endpoints";
/// Addresses that were refused when a webhook was set.
pub const REFUSED: &str = "a2a_webhook_refused_total";
/// What came in from other servers, by outcome.
pub const CALLBACKS: &str = "a2a_callbacks_total";

/// Tells the recorder what they mean.
pub fn describe_metrics() {
    describe_gauge!(
        BACKLOG,
        "Webhooks with a delivery that waits, or whose task has ended before they were told everything, and deliveries that an operator sends once more"
    );
    describe_gauge!(DEAD_LETTERS, "Webhook deliveries that were given up and are kept");
    describe_counter!(ATTEMPTS, "Attempts to deliver to a webhook, by outcome");
    describe_histogram!(ATTEMPT_SECONDS, Unit::Seconds, "How long attempts to deliver to a webhook take");
    describe_gauge!(
        OLDEST_SECONDS,
        Unit::Seconds,
        "How long the webhook that is furthest behind waits: since its delivery was made or its task has ended"
    );
    describe_gauge!(PAUSED_ENDPOINTS, "Endpoints that are paused because they keep failing");
    describe_counter!(REFUSED, "Webhooks whose address was refused");
    describe_counter!(CALLBACKS, "Notifications that other servers sent us, by outcome");
}
