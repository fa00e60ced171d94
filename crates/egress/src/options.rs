//! The options of the client, with defaults that suit webhooks.

use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::allowlist::Allowlist;
use crate::client_certificate::ClientCertificate;

/// The options of [`crate::Egress`].
#[derive(Clone, Debug)]
pub struct Options {
    /// What may be reached although it is not public.
    pub allowlist: Allowlist,
    /// Whether the address check is left out, for URLs that the operator or the user of a command line wrote. The text of
    /// a URL is still checked.
    pub anywhere: bool,
    /// The nameservers to ask, which needs the feature `nameservers`; empty for the system's.
    pub nameservers: Vec<SocketAddr>,
    /// How long a lookup may take altogether.
    pub dns_timeout: Duration,
    /// How long connecting may take, the lookup aside, and after it the TLS handshake.
    pub connect_timeout: Duration,
    /// How many connections may be open at the same time. A further call waits for a slot, as part of connecting.
    pub connections: usize,
    /// How long a connection may wait for its next use, or for the server to accept any bytes.
    pub idle_timeout: Duration,
    /// How many connections may wait per host.
    pub idle_per_host: usize,
    /// Certificate authorities to trust besides the system's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Presented to every server that asks for a client certificate.
    pub identity: Option<ClientCertificate>,
    /// Whether any server certificate is accepted (no verification). For trying things out, never by default.
    pub unverified: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowlist: Allowlist::default(),
            anywhere: false,
            nameservers: Vec::new(),
            dns_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            connections: 512,
            idle_timeout: Duration::from_secs(5),
            idle_per_host: 1,
            extra_roots: Vec::new(),
            identity: None,
            unverified: false,
        }
    }
}
