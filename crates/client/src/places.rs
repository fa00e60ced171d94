//! Where an agent's card may be, and where an agent is whose card names another host.
//!
//! People write down a base address, a card or an endpoint and do not say which. Cards, in turn, often name an address
//! that is good inside some network only; so what they say counts as a path below the address that was reached.

use switchboard_egress::Target;
use url::Url;

use crate::ClientError;

/// Below a base address, best first.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// An address as it was written down.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    url: Url,
}

impl Place {
    /// Reads an address. Without a scheme, one on this machine is called over http and all others over https.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            let host = text.split(['/', ':']).next().unwrap_or_default();
            let is_here = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.");
            format!("{}://{text}", if is_here { "http" } else { "https" })
        };
        let refused = |refusal| ClientError::Address { url: text.to_owned(), refusal };
        let target = Target::parse(&with_scheme).map_err(refused)?;
        let url = Url::parse(target.url());
        Ok(Self { url: url.map_err(|_| refused(switchboard_egress::Refusal::Malformed))? })
    }

    /// Where the card may be, in the order to look.
    pub(crate) fn cards(&self) -> Vec<String> {
        if self.is_card() {
            return vec![self.url.to_string()];
        }
        let path = self.base_path();
        let mut places: Vec<String> = WELL_KNOWN.iter().map(|known| self.at(&format!("{path}{known}"))).collect();
        if !path.is_empty() {
            // An endpoint below the agent's base: its card is most likely at the top.
            places.extend(WELL_KNOWN.iter().map(|known| self.at(known)));
        }
        places
    }

    /// Where an interface is that the card names.
    pub(crate) fn interface(&self, said: &str, trust: bool) -> Result<String, ClientError> {
        let said = self.url.join(said).map_err(|error| ClientError::Invalid {
            field: "url",
            problem: format!("the card names an address that cannot be read, {said:?}: {error}"),
        })?;
        if trust || said.origin() == self.url.origin() {
            return Ok(trimmed(said.as_str()));
        }
        let base = self.base_path();
        let path = trimmed(said.path());
        let is_below = path == base || path.strip_prefix(&base).is_some_and(|rest| rest.starts_with('/'));
        let path = if is_below { path } else { format!("{base}{path}") };
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let mut url = self.at(&path);
        if let Some(query) = said.query() {
            url = format!("{url}?{query}");
        }
        Ok(url)
    }

    /// The address itself, as an endpoint.
    pub(crate) fn endpoint(&self) -> String {
        trimmed(self.url.as_str())
    }

    /// For messages: neither path nor query.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn is_card(&self) -> bool {
        self.url.path().ends_with(".json")
    }

    /// What stands before the well-known paths, without a slash at the end.
    fn base_path(&self) -> String {
        let path = self.url.path();
        let path = match path.find("/.well-known/") {
            Some(at) => &path[..at],
            None if self.is_card() => path.rsplit_once('/').map_or("", |(before, _)| before),
            None => path,
        };
        trimmed(path)
    }

    fn at(&self, path: &str) -> String {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(None);
        url.to_string()
    }
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place::parse(text).unwrap()
    }

    #[test]
    fn cards_are_looked_for_below_the_address_and_then_at_the_top() {
        assert_eq!(
            place("agent.example").cards(),
            ["https://agent.example/.well-known/agent-card.json", "https://agent.example/.well-known/agent.json"]
        );
        assert_eq!(
            place("http://127.0.0.1:9/a2a/echo/").cards(),
            [
                "http://127.0.0.1:9/a2a/echo/.well-known/agent-card.json",
                "http://127.0.0.1:9/a2a/echo/.well-known/agent.json",
                "http://127.0.0.1:9/.well-known/agent-card.json",
                "http://127.0.0.1:9/.well-known/agent.json",
            ]
        );
        assert_eq!(place("localhost:9/some/card.json?v=2").cards(), ["http://localhost:9/some/card.json?v=2"]);
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
        for (given, said, expected) in cases {
            assert_eq!(place(given).interface(said, false).unwrap(), expected, "{given} {said}");
        }
        let trusted = place("https://proxy.example").interface("http://other.example/a2a", true).unwrap();
        assert_eq!(trusted, "http://other.example/a2a");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "ftp://x", "http://user:pass@host/", "http://"] {
            assert!(matches!(Place::parse(text), Err(ClientError::Address { .. })), "{text:?}");
        }
    }
}
