//! The DNS resolver that asks nameservers itself, the system's or the operator's: it caches, tells failures apart, and
//! blocks no thread.
//!
//! The system's configuration is read again when its files change, so that a change of network needs no restart. If it
//! cannot be read, the lookup fails and not the start, because a setup without names never needs it. The hosts file
//! overrides the nameservers, so that it holds without a network.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use parking_lot::Mutex;

use super::DnsError;

/// Caps the time to live of an answer: a moved endpoint is found again soon.
const MAX_POSITIVE_TTL: Duration = Duration::from_secs(300);

/// The same for "no such name": an endpoint that was registered too early is found soon.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(10);

/// How often the system's files are checked for changes.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// What the system's configuration is made of.
const SYSTEM_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Looks names up.
pub(crate) struct Resolver {
    source: Source,
    timeout: Duration,
}

type ResolverResult = Result<TokioResolver, DnsError>;

enum Source {
    Given(NameSources),
    System(Mutex<System>),
}

/// What a name is looked up in: the hosts file first, then the nameservers.
#[derive(Clone)]
struct NameSources {
    hosts: Arc<Hosts>,
    nameservers: ResolverResult,
}

/// The system's configuration as of the last check of its files.
struct System {
    checked_at: Instant,
    modified: [Option<SystemTime>; SYSTEM_FILES.len()],
    sources: NameSources,
}

impl Resolver {
    pub(crate) fn new(nameservers: &[SocketAddr], timeout: Duration) -> Self {
        let source = if nameservers.is_empty() {
            Source::System(Mutex::new(System {
                checked_at: Instant::now(),
                modified: modified(),
                sources: from_system(timeout),
            }))
        } else {
            // Configured nameservers replace this machine's hosts file too.
            let hosts = Arc::new(Hosts::default());
            Source::Given(NameSources { hosts, nameservers: from_nameservers(nameservers, timeout) })
        };
        Self { source, timeout }
    }

    /// Every address of the name, at least one. A caller must not assume that they are public.
    pub(crate) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let sources = self.current();
        let listed = hosts_file_addresses(&sources.hosts, name);
        if !listed.is_empty() {
            return Ok(listed);
        }
        let resolver = sources.nameservers?;
        let answer = tokio::time::timeout(self.timeout, resolver.lookup_ip(name)).await;
        let found: Vec<IpAddr> = match answer {
            Err(_) => return Err(DnsError::TimedOut),
            Ok(Err(error)) => return Err(from_net_error(&error)),
            Ok(Ok(found)) => found.iter().collect(),
        };
        if found.is_empty() {
            return Err(DnsError::NoAddress);
        }
        Ok(found)
    }

    fn current(&self) -> NameSources {
        match &self.source {
            Source::Given(sources) => sources.clone(),
            Source::System(system) => {
                let mut system = system.lock();
                if system.checked_at.elapsed() >= RELOAD_INTERVAL {
                    system.checked_at = Instant::now();
                    let modified = modified();
                    if modified != system.modified {
                        system.modified = modified;
                        system.sources = from_system(self.timeout);
                    }
                }
                system.sources.clone()
            }
        }
    }
}

fn modified() -> [Option<SystemTime>; SYSTEM_FILES.len()] {
    SYSTEM_FILES.map(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

/// The addresses of a name in the hosts file. The library alone would query the nameservers for the family that the file
/// leaves out, and first for the name with every suffix of the search list.
fn hosts_file_addresses(hosts: &Hosts, name: &str) -> Vec<IpAddr> {
    let Ok(name) = Name::from_ascii(name) else { return Vec::new() };
    let families = [RecordType::A, RecordType::AAAA];
    let found = families.into_iter().filter_map(|family| hosts.lookup_static_host(&Query::query(name.clone(), family)));
    found
        .flat_map(|lookup| lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect::<Vec<_>>())
        .collect()
}

fn from_system(timeout: Duration) -> NameSources {
    // A missing file is an empty one.
    let hosts = Arc::new(Hosts::from_system().unwrap_or_default());
    NameSources { hosts, nameservers: system_nameservers(timeout) }
}

fn system_nameservers(timeout: Duration) -> ResolverResult {
    let mut builder = TokioResolver::builder_tokio().map_err(unconfigured)?;
    apply_limits(builder.options_mut(), timeout);
    builder.build().map_err(unconfigured)
}

fn from_nameservers(nameservers: &[SocketAddr], timeout: Duration) -> ResolverResult {
    let servers = nameservers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.into())
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().use_hosts_file = ResolveHosts::Never;
    apply_limits(builder.options_mut(), timeout);
    builder.build().map_err(unconfigured)
}

fn apply_limits(options: &mut ResolverOpts, timeout: Duration) {
    // Both families, always: an address that was not looked up was not checked.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // Leaves time for a retry after a lost packet.
    options.timeout = options.timeout.min(timeout / 2);
    options.positive_max_ttl = Some(MAX_POSITIVE_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
}

fn unconfigured(error: NetError) -> DnsError {
    DnsError::Unconfigured(error.to_string().into())
}

fn from_net_error(error: &NetError) -> DnsError {
    if error.is_nx_domain() {
        return DnsError::NoSuchName;
    }
    if error.is_no_records_found() {
        return DnsError::NoAddress;
    }
    match error {
        NetError::Timeout => DnsError::TimedOut,
        _ => DnsError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_has_the_last_word_on_the_names_in_it() {
        let mut hosts = Hosts::default();
        let file = "10.0.0.7 agent Agent.internal # ours\n::1 six\n10.0.0.8 both\nfd00::8 both\n";
        hosts.read_hosts_conf(file.as_bytes()).unwrap();
        let found = |name: &str| hosts_file_addresses(&hosts, name).iter().map(IpAddr::to_string).collect::<Vec<_>>();
        for name in ["agent", "agent.", "agent.internal", "agent.internal."] {
            assert_eq!(found(name), ["10.0.0.7"], "{name}");
        }
        assert_eq!(found("six"), ["::1"]);
        assert_eq!(found("both"), ["10.0.0.8", "fd00::8"]);
        for name in ["internal", "other.agent", "agent.example"] {
            assert_eq!(found(name), [""; 0], "{name}");
        }
    }
}
