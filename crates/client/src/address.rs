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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> AgentAddress {
        AgentAddress::parse(text).unwrap()
    }

    #[test]
    fn cards_are_looked_for_below_the_address() {
        assert_eq!(
            address("agent.example").card_urls(),
            ["https://agent.example/.well-known/agent-card.json", "https://agent.example/.well-known/agent.json"]
        );
        assert_eq!(
            address("http://127.0.0.1:9/a2a/echo/").card_urls(),
            [
                "http://127.0.0.1:9/a2a/echo/.well-known/agent-card.json",
                "http://127.0.0.1:9/a2a/echo/.well-known/agent.json",
            ]
        );
        let parent = |text| address(text).parents().iter().map(AgentAddress::endpoint).collect::<Vec<_>>();
        assert_eq!(parent("https://h/a/b/c?k=1"), ["https://h/a/b", "https://h"]);
        assert_eq!(parent("https://h/a/"), ["https://h"]);
        assert!(parent("https://h/").is_empty() && parent("https://h/a/card.json").is_empty());
        assert_eq!(address("localhost:9/some/card.json?v=2").card_urls(), ["http://localhost:9/some/card.json?v=2"]);
    }

    #[test]
    fn an_address_means_what_is_on_the_same_way() {
        let here = address("http://127.0.0.1:9/a2a/echo");
        for path in ["/a2a/echo", "/a2a/echo/", "/a2a/echo/v1", "/a2a", "/"] {
            assert!(here.overlaps(&format!("http://127.0.0.1:9{path}")), "{path}");
        }
        for url in ["http://127.0.0.1:9/a2a/other", "http://127.0.0.1:9/a2a/echo2", "http://127.0.0.2:9/a2a/echo", "?"]
        {
            assert!(!here.overlaps(url), "{url}");
        }
        assert!(address("http://127.0.0.1:9").overlaps("http://127.0.0.1:9/rpc"));
    }

    #[test]
    fn an_address_on_the_card_stays_on_the_host_that_was_reached() {
        let cases = [
            ("https://proxy.example", "http://10.0.0.1:8080/a2a", "https://proxy.example/a2a"),
            ("https://proxy.example/quinn", "http://localhost:8080/a2a", "https://proxy.example/quinn/a2a"),
            ("https://proxy.example/a2a", "http://localhost:8080/a2a", "https://proxy.example/a2a"),
            ("https://proxy.example/a2a", "http://localhost:8080/", "https://proxy.example/a2a"),
            ("https://proxy.example", "http://localhost:8080", "https://proxy.example/"),
            ("https://proxy.example", "/rpc", "https://proxy.example/rpc"),
            ("https://proxy.example", "https://proxy.example/x/y", "https://proxy.example/x/y"),
            ("https://p.example/q/.well-known/agent-card.json", "http://i/a2a?k=1", "https://p.example/q/a2a?k=1"),
        ];
        for (given, card_url, expected) in cases {
            assert_eq!(address(given).resolve_interface(card_url, false).unwrap(), expected, "{given} {card_url}");
        }
        for (given, card_url) in [("https", "https"), ("http", "http"), ("http", "https")] {
            let card_url = format!("{card_url}://other.example/a2a");
            let trusted = address(&format!("{given}://proxy.example")).resolve_interface(&card_url, true).unwrap();
            assert_eq!(trusted, card_url);
        }
        for card_url in ["http://other.example/a2a", "http://proxy.example/a2a", "ftp://other.example/a2a"] {
            let error = address("https://proxy.example").resolve_interface(card_url, true).unwrap_err().to_string();
            assert!(error.contains("without encryption") && error.contains(card_url), "{error}");
        }
    }

    #[test]
    fn a_card_above_an_address_speaks_for_what_it_names() {
        let cases = [
            ("https://h/a2a", "https://h", "https://h/a2a", CardMatch::Exact),
            ("https://h/a2a/", "https://h", "http://inside:8080/a2a?k=1", CardMatch::Exact),
            ("https://h/a2a", "https://h", "/a2a/", CardMatch::Exact),
            ("https://h/a2a", "https://h", "https://h/a2a/guide", CardMatch::Below),
            ("https://h/a2a/echoo", "https://h", "https://h/a2a/guide", CardMatch::None),
            ("https://h/a2a/echoo", "https://h/a2a", "http://inside/a2a", CardMatch::None),
            ("https://h/a2a/echo", "https://h", "https://h/a2a/echoo", CardMatch::None),
            ("https://h/a2a", "https://h", "https://h/", CardMatch::None),
            ("https://h/quinn/a2a", "https://h/quinn", "http://inside/a2a", CardMatch::Exact),
            ("https://h/a2a/echo/v1", "https://h/a2a/echo", "http://inside/a2a/echo", CardMatch::Exact),
        ];
        for (given, parent, card_url, expected) in cases {
            let json = serde_json::json!({"name": "n", "supportedInterfaces": [
                {"url": "https://h/zzz", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": card_url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            ]});
            let card = AgentCard::decode(json.to_string().as_bytes()).unwrap();
            assert_eq!(address(given).match_card(&card, &address(parent)), expected, "{given} {parent} {card_url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "ftp://x", "http://user:sesame@host/", "http://"] {
            let Err(error @ ClientError::Address { .. }) = AgentAddress::parse(text) else { panic!("{text:?}") };
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
    }
}
