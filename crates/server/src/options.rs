//! The server's options and their defaults. The configuration file spells these the same way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use switchboard_a2a::card::CardFormat;

use crate::Tls;

/// The server's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The base of every URL on cards, without a slash at its end. Its host is also accepted in `Host`.
    pub public_base_url: String,
    /// Whether it runs without keys, which is for loopback only: then Host must be a loopback name or the public base.
    pub open: bool,
    /// The certificate, if TLS is spoken; then nothing else is.
    pub tls: Option<Arc<Tls>>,
    /// Web origins that may call from a browser; `*` stands for all of them.
    pub allowed_origins: Vec<String>,
    /// Reverse proxies whose forwarding headers count.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether a request of version 1.0 must name its version: there is no default version then.
    pub strict_version: bool,
    /// The default version of the card, for requests that name none.
    pub card_default: CardFormat,
    /// Time for a client's request headers, and before that for the TLS handshake; also the longest pause within its
    /// body.
    pub header_timeout: Duration,
    /// Time for a client's request body. The bytes it has sent extend it, see `edge/request_body.rs`, so that a large body
    /// may come over a slow line.
    pub body_timeout: Duration,
    /// How long a slow client may read nothing of a response that is ready. Then its connection is cut.
    pub write_timeout: Duration,
    /// How long a connection may stay open without a request. Longer than the pools of common clients keep theirs, so
    /// that it is the client that closes.
    pub idle_timeout: Duration,
    /// How long graceful shutdown waits for open requests. A little longer than the kernel's drain time, so that blocked
    /// senders get their answer.
    pub drain: Duration,
    /// Open connections.
    pub connections: usize,
    /// Of these, for one address, of IPv6 for one /64 network. Trusted proxies are exempt: there it limits the requests in
    /// flight of each of their clients.
    pub connections_per_address: usize,
    /// Whether that does not hold for loopback. Tests have no other address.
    pub loopback_is_exempt: bool,
    /// Open event streams.
    pub streams: usize,
    /// Of these, for one caller.
    pub streams_per_caller: usize,
    /// The response budget: bytes of large responses that clients have not read yet. Beyond it responses wait before they
    /// are rendered.
    pub response_bytes: usize,
    /// The same for one caller. A single larger response is sent when nothing else of its caller is in flight.
    pub response_bytes_per_caller: usize,
    /// Bytes of a request body.
    pub request_body: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's headers, all together and with its address.
    pub request_headers: usize,
    /// Parts of a message.
    pub max_parts: usize,
    /// Levels of nesting in a request body.
    pub max_depth: usize,
    /// Bytes of a page of tasks, unless its one task is larger. What does not fit begins the next page.
    pub page: usize,
    /// SSE keep-alive: time without a frame after which a stream sends a comment.
    pub ping: Duration,
    /// Renders `/metrics`; without it that path is not found.
    pub metrics: Option<RenderMetrics>,
}

/// Renders the metrics of this process in the text format of Prometheus.
#[derive(Clone)]
pub struct RenderMetrics(pub Arc<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for RenderMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RenderMetrics")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            public_base_url: "http://127.0.0.1:41242".to_owned(),
            open: true,
            tls: None,
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            strict_version: false,
            card_default: CardFormat::Hybrid,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(120),
            drain: Duration::from_secs(12),
            connections: 10_000,
            connections_per_address: 1_000,
            loopback_is_exempt: true,
            streams: 5_000,
            streams_per_caller: 1_000,
            response_bytes: 128 << 20,
            response_bytes_per_caller: 32 << 20,
            request_body: 10 << 20,
            headers: 100,
            request_headers: 64 << 10,
            max_parts: 1_000,
            max_depth: 64,
            page: 16 << 20,
            ping: Duration::from_secs(15),
            metrics: None,
        }
    }
}
