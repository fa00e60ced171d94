//! Resolves an agent's address: the urls its card may have, and the urls of the interfaces on the card.
//!
//! An address may be a base url, a card or an endpoint. Cards often name a host that exists inside some network only;
//! so their urls count as paths below the address that was reached.

use switchboard_a2a::card::AgentCard;
use switchboard_egress::Target;
use url::Url;

use crate::ClientError;
use crate::redact::redact_url;

/// Paths of cards below a base address, in order.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// How surely a card belongs to an address; greater is surer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CardMatch {
    /// The card is another agent's.
    None,
    /// One of its interfaces lies below the address.
    Below,
    /// One of its interfaces is the address.
    Exact,
}

/// An address as it was configured.
#[derive(Clone, Debug)]
pub(crate) struct AgentAddress {
    url: Url,
}

impl AgentAddress {
    /// Parses an address. Without a scheme, loopback is called over http and all others over https.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            let host = text.split(['/', ':']).next().unwrap_or_default();
            let is_here = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.");
            format!("{}://{text}", if is_here { "http" } else { "https" })
        };
        let refused = |refusal| ClientError::Address { url: redact_url(text), refusal };
        let target = Target::parse(&with_scheme).map_err(refused)?;
        let url = Url::parse(target.url());
        Ok(Self { url: url.map_err(|_| refused(switchboard_egress::UrlRefusal::Malformed))? })
    }

    /// The urls of the card, in order.
    pub(crate) fn card_urls(&self) -> Vec<String> {
        if self.is_card() {
            return vec![self.url.to_string()];
        }
        let path = self.base_path();
        WELL_KNOWN.iter().map(|known| self.with_path(&format!("{path}{known}"))).collect()
    }

    /// The parent path and the root, if the address may be an endpoint. A card there may be another agent's; see
    /// [`Self::match_card`].
    pub(crate) fn parents(&self) -> Vec<Self> {
        let path = self.base_path();
        if self.is_card() || path.is_empty() {
            return Vec::new();
        }
        let next = path.rsplit_once('/').map_or("", |(before, _)| before);
        let mut places = vec![next];
        places.extend((!next.is_empty()).then_some(""));
        places.iter().filter_map(|path| Url::parse(&self.with_path(path)).ok()).map(|url| Self { url }).collect()
    }

    /// Whether a card found at a parent address belongs to this one.
    pub(crate) fn match_card(&self, card: &AgentCard, parent: &Self) -> CardMatch {
        let base = self.base_path();
        let card_url = card
            .supported_interfaces
            .iter()
            .filter_map(|interface| parent.resolve_interface(&interface.url, false).ok());
        let matches = card_url.filter_map(|card_url| Url::parse(&card_url).ok()).map(|card_url| {
            let path = without_trailing_slash(card_url.path());
            match path.strip_prefix(&base) {
                Some("") => CardMatch::Exact,
                Some(rest) if rest.starts_with('/') => CardMatch::Below,
                // Version 0.3 adds this to its address over REST.
                _ if base.strip_suffix("/v1") == Some(&path) => CardMatch::Exact,
                _ => CardMatch::None,
            }
        });
        matches.max().unwrap_or(CardMatch::None)
    }

    /// The url to call for an interface on the card.
    pub(crate) fn resolve_interface(&self, card_url: &str, trust: bool) -> Result<String, ClientError> {
        let card_url = self.url.join(card_url).map_err(|error| ClientError::Invalid {
            field: "url",
            problem: format!("the card names an address that cannot be read, {card_url:?}: {error}"),
        })?;
        if trust && self.url.scheme() == "https" && card_url.scheme() != "https" {
            return Err(ClientError::Invalid {
                field: "url",
                problem: format!(
                    "the card came over https and names an address without encryption, {}; it should name one that begins \
                     with https",
                    redact_url(card_url.as_str())
                ),
            });
        }
        if trust || card_url.origin() == self.url.origin() {
            return Ok(without_trailing_slash(card_url.as_str()));
        }
        let base = self.base_path();
        let path = without_trailing_slash(card_url.path());
        let path = if is_at_or_below(&path, &base) { path } else { format!("{base}{path}") };
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let mut url = self.with_path(&path);
        if let Some(query) = card_url.query() {
            url = format!("{url}?{query}");
        }
        Ok(url)
    }

    /// Whether an interface's url and this address are the same or one is below the other.
    pub(crate) fn overlaps(&self, interface: &str) -> bool {
        let Ok(url) = Url::parse(interface) else { return false };
        let (base, path) = (self.base_path(), without_trailing_slash(url.path()));
        url.origin() == self.url.origin() && (is_at_or_below(&path, &base) || is_at_or_below(&base, &path))
    }

    /// The address itself, as an endpoint.
    pub(crate) fn endpoint(&self) -> String {
        without_trailing_slash(self.url.as_str())
    }

    /// Without path and query, for messages.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn is_card(&self) -> bool {
        self.url.path().ends_with(".json")
    }

    /// The path before the well-known paths, without a trailing slash.
    fn base_path(&self) -> String {
        let path = self.url.path();
        let path = match path.find("/.well-known/") {
            Some(at) => &path[..at],
            None if self.is_card() => path.rsplit_once('/').map_or("", |(before, _)| before),
            None => path,
        };
        without_trailing_slash(path)
    }

    fn with_path(&self, path: &str) -> String {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(None);
        url.to_string()
    }
}

fn is_at_or_below(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn without_trailing_slash(text: &str) -> String {
    text.trim_end_matches('/').to_owned()
}
