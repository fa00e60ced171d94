//! The address policy of the SSRF guard: whether a target may be called, and at which addresses.
//!
//! The only place where the allowlist, the address table and the resolver meet: the check at registration and the
//! connector at call time both use it, so they cannot decide differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::special_purpose;
use crate::allowlist::Allowlist;
use crate::resolver::Resolver;
use crate::target::Target;
use crate::url_refusal::UrlRefusal;

/// What `localhost` means, whatever a hosts file says.
const LOCALHOST: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

pub(crate) struct Policy {
    pub(crate) allowlist: Allowlist,
    /// Every host counts as trusted: the operator or the user of a command line chose the URL.
    pub(crate) anywhere: bool,
    pub(crate) resolver: Resolver,
}

/// The decision about a target as far as it needs no nameserver.
pub(crate) enum PolicyDecision {
    /// These addresses may be connected to.
    Addresses(Vec<IpAddr>),
    /// The addresses of the name decide, unless the allowlist has the name: then any is fine.
    Lookup { is_trusted: bool },
}

impl Policy {
    /// Decides without the network.
    pub(crate) fn decide(&self, target: &Target) -> Result<PolicyDecision, UrlRefusal> {
        let trusted = self.anywhere || self.allowlist.allows_host(target);
        if let Some(address) = target.address() {
            return match special_purpose(address) {
                Some(reason) if !trusted && !self.allowlist.allows_address(address) => Err(UrlRefusal::Address(reason)),
                _ => Ok(PolicyDecision::Addresses(vec![address])),
            };
        }
        if target.is_localhost() {
            // These are fixed and not resolved, so it is safe to use the permitted ones alone.
            let permitted = LOCALHOST.into_iter().filter(|address| trusted || self.allowlist.allows_address(*address));
            let permitted: Vec<IpAddr> = permitted.collect();
            let is_refused = permitted.is_empty();
            return if is_refused { Err(UrlRefusal::Localhost) } else { Ok(PolicyDecision::Addresses(permitted)) };
        }
        Ok(PolicyDecision::Lookup { is_trusted: trusted })
    }

    /// The addresses to connect to. One that is not public refuses all of them: a name that leads inside the network
    /// once will do so again.
    pub(crate) async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, UrlRefusal> {
        let is_trusted = match self.decide(target)? {
            PolicyDecision::Addresses(addresses) => return Ok(addresses),
            PolicyDecision::Lookup { is_trusted } => is_trusted,
        };
        let found = self.resolver.lookup(target.name()).await.map_err(UrlRefusal::Unresolved)?;
        let fine = |address: &IpAddr| special_purpose(*address).is_none() || self.allowlist.allows_address(*address);
        if !is_trusted && !found.iter().all(fine) {
            return Err(UrlRefusal::NotPublic);
        }
        Ok(found)
    }
}
