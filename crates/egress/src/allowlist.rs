//! The allowlist of the SSRF guard: hosts by name and addresses by range that may be called although they are not
//! public.
//!
//! A host entry allows the name whatever it resolves to; a range allows its addresses whatever names resolve to them.
//! Both are read strictly from the configuration and leniently from the environment, where one bad entry should not
//! discard the good ones.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use thiserror::Error;
use url::Host;

use crate::target::{Target, dns_name};

/// The allowed hosts and address ranges. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist {
    hosts: Vec<HostEntry>,
    cidrs: Vec<IpNet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostEntry {
    /// Normalised as a target's host is.
    host: String,
    /// Written as `*.host`: every name under it, at any depth, but not the host itself.
    subdomains: bool,
    port: Option<u16>,
}

/// An entry of an allowlist that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AllowlistError {
    /// Not a host.
    #[error("\"{entry}\" is not a host: write a name, *.name or an address, with :port or without")]
    Host {
        /// As it was written.
        entry: String,
    },
    /// Not an address range.
    #[error("\"{entry}\" is not an address range: write 10.0.0.0/8, fd00::/8 or a single address")]
    Cidr {
        /// As it was written.
        entry: String,
    },
}

impl Allowlist {
    /// Reads both lists strictly: fails with the first entry that cannot be read.
    pub fn parse<H, C>(hosts: H, cidrs: C) -> Result<Self, AllowlistError>
    where
        H: IntoIterator<Item: AsRef<str>>,
        C: IntoIterator<Item: AsRef<str>>,
    {
        let hosts = hosts.into_iter().map(|entry| host_entry(entry.as_ref())).collect::<Result<_, _>>()?;
        let cidrs = cidrs.into_iter().map(|entry| cidr_entry(entry.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { hosts, cidrs })
    }

    /// Reads both lists as the environment holds them, separated by commas or blanks: the good entries, and the bad
    /// ones to warn about.
    pub fn from_text(hosts: &str, cidrs: &str) -> (Self, Vec<AllowlistError>) {
        let mut bad = Vec::new();
        let hosts = words(hosts).filter_map(|word| host_entry(word).map_err(|error| bad.push(error)).ok()).collect();
        let cidrs = words(cidrs).filter_map(|word| cidr_entry(word).map_err(|error| bad.push(error)).ok()).collect();
        (Self { hosts, cidrs }, bad)
    }

    /// What either of the two allows.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.hosts.extend(other.hosts);
        self.cidrs.extend(other.cidrs);
        self
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.cidrs.is_empty()
    }

    /// Whether the target's host is named, so that any address is fine for it.
    pub fn allows_host(&self, target: &Target) -> bool {
        self.hosts.iter().any(|entry| entry.matches(target.host(), target.port()))
    }

    /// Whether the address lies in a range. An IPv4-mapped address counts as the IPv4 address.
    pub fn allows_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.cidrs.iter().any(|net| net.contains(&address))
    }
}

impl HostEntry {
    fn matches(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|only| only != port) {
            return false;
        }
        if !self.subdomains {
            return host == self.host;
        }
        host.strip_suffix(self.host.as_str()).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| character == ',' || character.is_whitespace()).filter(|word| !word.is_empty())
}

fn host_entry(text: &str) -> Result<HostEntry, AllowlistError> {
    read_host(text.trim()).ok_or_else(|| AllowlistError::Host { entry: text.to_owned() })
}

fn read_host(entry: &str) -> Option<HostEntry> {
    if let Ok(IpAddr::V6(address)) = entry.parse() {
        return Some(HostEntry { host: format!("[{address}]"), subdomains: false, port: None });
    }
    let (entry, subdomains) = entry.strip_prefix("*.").map_or((entry, false), |rest| (rest, true));
    // The last colon is a port's unless it is inside the brackets of an IPv6 address.
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok().filter(|port| *port != 0)?)),
        _ => (entry, None),
    };
    let host = match Host::parse(host).ok()? {
        Host::Domain(name) => dns_name(&name)?.to_owned(),
        _ if subdomains => return None,
        address => address.to_string(),
    };
    Some(HostEntry { host, subdomains, port })
}

fn cidr_entry(text: &str) -> Result<IpNet, AllowlistError> {
    let entry = text.trim();
    let net = match entry.parse::<IpAddr>() {
        Ok(address) => Some(IpNet::from(address)),
        Err(_) => entry.parse::<IpNet>().ok(),
    };
    net.map(canonical_net).ok_or_else(|| AllowlistError::Cidr { entry: text.to_owned() })
}

/// A range inside ::ffff:0:0/96 is a range of IPv4 addresses, and addresses are canonical before they are compared.
fn canonical_net(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    mapped.and_then(|(address, length)| Ipv4Net::new(address, length).ok()).map_or(net, IpNet::V4)
}
