//! How the guarded client is set up, with the values that suit webhooks.

use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::allowlist::Allowlist;
use crate::client_certificate::Identity;

/// How the guarded client is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// What may be reached although it is not public.
    pub allowlist: Allowlist,
    /// Whether addresses are not judged at all, for URLs that the operator or the user of a command line wrote. What is
    /// wrong with a URL's text stays wrong.
    pub anywhere: bool,
    /// The nameservers to ask; empty for the system's.
    pub nameservers: Vec<SocketAddr>,
    /// How long a lookup may take altogether.
    pub dns_timeout: Duration,
    /// How long connecting may take, the lookup aside, and after it the TLS handshake.
    pub connect_timeout: Duration,
    /// How many connections may be open at the same time. Who needs another one waits, as part of connecting.
    pub connections: usize,
    /// How long a connection may wait for its next use, or for the other side to take anything in.
    pub idle_timeout: Duration,
    /// How many connections may wait per host.
    pub idle_per_host: usize,
    /// Certificate authorities to trust besides the system's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// What is shown to every server that asks for a client certificate.
    pub identity: Option<Identity>,
    /// Whether any certificate is taken, so that nobody knows who answers. For trying things out, never by default.
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
