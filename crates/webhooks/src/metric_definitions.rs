//! The names of this crate's metrics, and what each of them says.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub(crate) const BACKLOG: &str = "a2a_webhook_backlog";
pub(crate) const DEAD_LETTERS: &str = "a2a_webhook_dead_letters";
pub(crate) const ATTEMPTS: &str = "a2a_webhook_attempts_total";
pub(crate) const ATTEMPT_SECONDS: &str = "a2a_webhook_attempt_duration_seconds";
pub(crate) const OLDEST_SECONDS: &str = "a2a_webhook_oldest_undelivered_seconds";
pub(crate) const PAUSED_ENDPOINTS: &str = "a2a_webhook_paused_endpoints";
pub(crate) const REFUSED: &str = "a2a_webhook_refused_total";
pub(crate) const CALLBACKS: &str = "a2a_callbacks_total";

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
