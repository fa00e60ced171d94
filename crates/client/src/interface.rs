//! Negotiation of an interface: what both sides speak, the newest version first, then in the order of the card.

use std::borrow::Cow;

use switchboard_a2a::card::{AgentCard, AgentInterface};
use switchboard_a2a::{Dialect, PushRequest, Request, Version, parse_version};

use crate::address::AgentAddress;
use crate::discovery::FoundCard;
use crate::{Binding, ClientError, Peer};

/// An interface that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    pub binding: Binding,
    pub version: Version,
    /// The tenant for every request.
    pub tenant: Option<String>,
}

impl Interface {
    /// Its dialect.
    pub fn dialect(&self) -> Dialect {
        match self.binding {
            Binding::JsonRpc => self.version.rpc_dialect(),
            Binding::Rest => self.version.rest_dialect(),
        }
    }

    /// The same url in the other version.
    pub(crate) fn in_other_version(&self) -> Self {
        let version = match self.version {
            Version::V1 => Version::V03,
            Version::V03 => Version::V1,
        };
        Self { version, ..self.clone() }
    }

    /// The request as this interface takes it: with its tenant, and without what its dialect cannot say.
    pub(crate) fn adapt<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        let wanted = self.tenant.clone().filter(|_| self.version == Version::V1);
        if wanted.is_none() && self.dialect() == Dialect::V1 {
            return Cow::Borrowed(request);
        }
        let mut request = request.clone();
        let tenant = match &mut request {
            Request::Send(request) => &mut request.tenant,
            Request::List(request) => &mut request.tenant,
            Request::Get { tenant, .. }
            | Request::Cancel { tenant, .. }
            | Request::Subscribe { tenant, .. }
            | Request::ExtendedCard { tenant }
            | Request::Push(
                PushRequest::Get { tenant, .. } | PushRequest::List { tenant, .. } | PushRequest::Delete { tenant, .. },
            ) => tenant,
            Request::Push(PushRequest::Create(config)) => &mut config.tenant,
        };
        if tenant.is_none() {
            *tenant = wanted;
        }
        let left_out = request.remove_unsupported(self.dialect());
        if !left_out.is_empty() {
            tracing::debug!(fields = left_out.join(", "), dialect = %self.dialect(), "this dialect has no place for them");
        }
        if let Request::Push(PushRequest::Create(config)) = &mut request
            && self.dialect() == Dialect::V03Rest
        {
            // The id is part of the path there.
            config.id.get_or_insert_with(|| uuid::Uuid::now_v7().to_string());
        }
        Cow::Owned(request)
    }
}

/// All interfaces on the card that can be used, best first.
pub(crate) fn negotiate(
    found_card: &FoundCard,
    peer: &Peer,
    typed: &AgentAddress,
) -> Result<Vec<Interface>, ClientError> {
    let (card, address) = (&found_card.card, found_card.address(typed));
    let mut found = Vec::new();
    let mut wrong = None;
    for interface in &card.supported_interfaces {
        let (Some(binding), Some(version)) =
            (Binding::from_name(&interface.protocol_binding), supported_version(interface))
        else {
            continue;
        };
        let wanted =
            peer.binding.is_none_or(|wanted| wanted == binding) && peer.version.is_none_or(|wanted| wanted == version);
        if wanted {
            let url = match &peer.endpoint {
                Some(endpoint) => endpoint.clone(),
                None => match address.resolve_interface(&interface.url, peer.trust_card_url) {
                    Ok(url) => url,
                    Err(error) => {
                        tracing::debug!(%error, "an interface is left out");
                        wrong.get_or_insert(error);
                        continue;
                    }
                },
            };
            found.push(Interface {
                url,
                binding,
                version,
                tenant: peer.tenant.clone().or_else(|| interface.tenant.clone()),
            });
        }
    }
    if found.is_empty() {
        let none = || ClientError::NoInterface { name: card.name.clone(), offered: describe_offer(card, peer) };
        return Err(wrong.unwrap_or_else(none));
    }
    // A card from a parent address may list interfaces of several agents.
    if found_card.parent.is_some() && found.iter().any(|interface| typed.overlaps(&interface.url)) {
        found.retain(|interface| typed.overlaps(&interface.url));
    }
    let rank = |binding| peer.preferred.iter().position(|wanted| *wanted == binding).unwrap_or(peer.preferred.len());
    // A stable sort, so that the card's order stays where nothing else is preferred.
    found.sort_by_key(|interface| (interface.version == Version::V03, rank(interface.binding)));
    Ok(found)
}

/// The interface of an agent without a card, if binding and version, or the endpoint, are configured.
pub(crate) fn named(peer: &Peer, address: &AgentAddress) -> Option<Interface> {
    let binding = peer.binding.or(peer.preferred.first().copied());
    let (binding, version) = match (binding, peer.version, &peer.endpoint) {
        (Some(binding), Some(version), _) => (binding, version),
        (binding, version, Some(_)) => (binding.unwrap_or(Binding::JsonRpc), version.unwrap_or(Version::V1)),
        _ => return None,
    };
    let url = peer.endpoint.clone().unwrap_or_else(|| address.endpoint());
    Some(Interface { url, binding, version, tenant: peer.tenant.clone() })
}

/// Other minor versions are spoken as the known one of the same major version.
fn supported_version(interface: &AgentInterface) -> Option<Version> {
    match parse_version(&interface.protocol_version)?.major {
        1 => Some(Version::V1),
        0 => Some(Version::V03),
        _ => None,
    }
}

fn describe_offer(card: &AgentCard, peer: &Peer) -> String {
    let listed: Vec<String> = card
        .supported_interfaces
        .iter()
        .map(|interface| format!("{} {}", interface.protocol_binding, interface.protocol_version))
        .collect();
    let listed =
        if listed.is_empty() { "its card lists none".to_owned() } else { format!("it has {}", listed.join(", ")) };
    let wanted: Vec<&str> =
        [peer.binding.map(Binding::as_str), peer.version.map(Version::as_str)].into_iter().flatten().collect();
    match wanted.as_slice() {
        [] => format!("{listed}; JSONRPC and HTTP+JSON in versions 1.0 and 0.3 can be used"),
        wanted => format!("{listed}, and {} was asked for", wanted.join(" ")),
    }
}
