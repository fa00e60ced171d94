//! Maps the configuration to the options of the other crates.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::card::CardFormat;
use switchboard_a2a::extension::Emit;
use switchboard_egress as egress;
use switchboard_engine::store::feed::JOURNAL_LINE_BYTES;
use switchboard_engine::{DelegationLimits, DelegationScope, Settings};
use switchboard_server::{Options, RenderMetrics, Tls};
use switchboard_store as store;
use switchboard_webhooks as webhooks;

use crate::config::Config;
use crate::config::cards::CardForm;
use crate::config::delegation::{Delegation, Scope};
use crate::config::extensions::EmittedCarriers;
use crate::config::store::Durability;

/// Time open requests get beyond the drain time of tasks, so that blocked senders get the state of their task.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Settings of the engine.
pub(super) fn engine(config: &Config) -> Settings {
    let (limits, tasks, retention) = (&config.limits, &config.tasks, &config.store.retention);
    Settings {
        running_tasks: limits.running_tasks.get(),
        running_per_caller: limits.running_per_caller.get(),
        running_per_agent: limits.running_per_agent.get(),
        remote_tasks: limits.remote_tasks.get(),
        queued_turns: limits.queued_turns.get(),
        parked_tasks: limits.parked_tasks.get(),
        parked_per_caller: limits.parked_per_caller.get(),
        uncommitted_bytes: limits.uncommitted_bytes.length(),
        uncommitted_events: limits.uncommitted_events.get(),
        event_bytes: limits.event.length(),
        task_bytes: limits.task.bytes(),
        drain: tasks.drain.duration(),
        cancel_grace: tasks.cancel_grace.duration(),
        park: tasks.park.duration(),
        parked_expiry: tasks.parked_expiry.duration(),
        deadline: tasks.deadline.duration(),
        idle: tasks.idle.duration(),
        max_blocking: tasks.max_blocking.duration(),
        max_recoveries: tasks.max_recoveries,
        parallel_recoveries: tasks.parallel_recoveries.get(),
        retention_age: retention.max_age.duration(),
        retention_tasks: retention.max_tasks.get() as u64,
        retention_bytes: retention.max_bytes.bytes(),
        contexts: limits.contexts.get(),
        feed_ring_bytes: config.hub.feed.ring.length(),
        journal_age: config.hub.journal.keep.duration(),
        audit_age: config.hub.journal.audit.duration(),
        consumer_hold: config.hub.projector.hold.duration(),
        delegation: delegation(&config.delegation),
        delegation_scope: match config.delegation.scope {
            Scope::Agent => DelegationScope::Agent,
            Scope::Both => DelegationScope::Both,
        },
        emit: match config.hub.extensions.emit {
            EmittedCarriers::Newest => Emit::Newest,
            EmittedCarriers::All => Emit::All,
        },
    }
}

fn delegation(config: &Delegation) -> DelegationLimits {
    DelegationLimits {
        max_depth: config.max_depth.get(),
        revisit: usize::try_from(config.revisit).unwrap_or(usize::MAX),
        max_children: config.max_children.get(),
        max_tree: config.max_tree.get(),
    }
}

/// Options of the HTTP server; `open` depends on the stored keys and is set later.
pub(super) fn server(config: &Config, address: SocketAddr, tls: Option<Arc<Tls>>) -> Options {
    let (server, limits) = (&config.server, &config.limits);
    Options {
        public_base_url: server.base_url(address).as_str().to_owned(),
        open: false,
        tls,
        allowed_origins: server.allowed_origins.iter().map(|origin| origin.0.clone()).collect(),
        trusted_proxies: server.trusted_proxies.iter().map(|network| network.0).collect(),
        strict_version: server.strict_version,
        card_default: match config.cards.default {
            CardForm::Hybrid => CardFormat::Hybrid,
            CardForm::V1 => CardFormat::V1,
            CardForm::V03 => CardFormat::V03,
        },
        header_timeout: server.header_timeout.duration(),
        body_timeout: server.body_timeout.duration(),
        write_timeout: server.write_timeout.duration(),
        idle_timeout: server.idle_timeout.duration(),
        drain: config.tasks.drain.duration() + LAST_ANSWERS,
        connections: limits.connections.get(),
        connections_per_address: limits.connections_per_address.get(),
        loopback_is_exempt: true,
        streams: limits.streams.get(),
        streams_per_caller: limits.streams_per_caller.get(),
        response_bytes: limits.response_bytes.length(),
        response_bytes_per_caller: limits.response_bytes_per_caller.length(),
        request_body: limits.request_body.length(),
        headers: limits.headers.get(),
        request_headers: limits.request_headers.length(),
        max_parts: limits.parts.get(),
        max_depth: limits.nesting.get(),
        page: limits.page.length(),
        ping: config.streams.ping.duration(),
        metrics: metrics(),
    }
}

/// What `/metrics` shows. A program that has installed its own recorder keeps it, and has no `/metrics`.
#[cfg(feature = "metrics")]
fn metrics() -> Option<RenderMetrics> {
    super::metrics_exporter::install().inspect_err(|error| tracing::warn!(%error, "/metrics is off")).ok()
}

/// Nothing: there is no exporter in this build, and the program may install a recorder of its own.
#[cfg(not(feature = "metrics"))]
fn metrics() -> Option<RenderMetrics> {
    None
}

/// Options of the store. A second server on the same data reads the note.
pub(super) fn store(config: &Config, address: SocketAddr) -> store::Options {
    store::Options {
        durability: match config.store.durability {
            Durability::Full => store::Durability::Full,
            Durability::Process => store::Durability::Process,
        },
        max_queue_delay: config.store.max_queue_delay.duration(),
        journal_line: config.hub.journal.line.length().max(JOURNAL_LINE_BYTES),
        note: format!("switchboard on {}", config.server.url_at(address).as_str()),
        ..store::Options::default()
    }
}

/// Options of the egress client.
pub(super) fn egress(config: &Config) -> egress::Options {
    egress::Options {
        allowlist: config.webhooks.allowlist(),
        nameservers: config.webhooks.nameserver_addresses(),
        connect_timeout: config.webhooks.connect_timeout.duration(),
        ..egress::Options::default()
    }
}

/// Options of webhooks.
pub(super) fn webhooks(config: &Config) -> webhooks::Options {
    let webhooks = &config.webhooks;
    webhooks::Options {
        enabled: webhooks.enabled,
        per_task: webhooks.per_task.get(),
        return_secrets: webhooks.return_secrets,
        timeout: webhooks.timeout.duration(),
        retries: webhooks.retries.iter().map(|wait| wait.duration()).collect(),
        hold_tasks: webhooks.hold_tasks.duration(),
        parallel: webhooks.parallel.get(),
        parallel_per_endpoint: webhooks.parallel_per_endpoint.get(),
        pause_after: u32::try_from(webhooks.pause_after.get()).unwrap_or(u32::MAX),
        pause: webhooks.pause.duration(),
        max_pause: webhooks.max_pause.duration(),
        dead_letter_age: webhooks.dead_letters.max_age.duration(),
        dead_letters: webhooks.dead_letters.max.get(),
        dead_letter_bytes: webhooks.dead_letters.max_bytes.bytes(),
    }
}

#[cfg(test)]
mod tests;
