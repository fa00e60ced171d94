//! Which interfaces of the SDKs' clients call which interfaces of their servers through the hub: all of them, or as few
//! pairs as call every server with every operation in both versions, and let every client call servers of both.

use std::collections::{BTreeMap, BTreeSet};

use crate::interop::results_page::{Expected, client_operations};

/// The bindings of every SDK.
const BINDINGS: [&str; 2] = ["jsonrpc", "rest"];

/// An operation that every client has, so that an interface which is not on the page yet is called all the same.
const ANY: &str = "";

/// How much of the matrix is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    /// Every pair.
    Whole,
    /// What shows everything once.
    Covering,
}

/// An interface of a client, and the one of a server that it reaches through the hub.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    /// The folder of the client's SDK.
    pub(super) client: &'static str,
    from: String,
    /// The folder of the server's SDK.
    server: &'static str,
    to: String,
}

impl Pair {
    /// As a runner is told of it.
    pub(super) fn told(&self) -> String {
        format!("{}>{}/{}", self.from, self.server, self.to)
    }

    /// As the names of its checks begin, where a hyphen ends the interface.
    pub(super) fn interface(&self) -> String {
        format!("{}>{}", self.from, format!("{}/{}", self.server, self.to).replace('-', "@"))
    }
}

/// The interfaces that an SDK's server has, which are also those that its client speaks.
pub(super) fn interfaces(folder: &str) -> Vec<String> {
    let versions: &[&str] = match folder {
        "official-0.5.3" => &["1.0"],
        "python-0.3.26" | "js-0.3.14" => &["0.3"],
        _ => &["1.0", "0.3"],
    };
    let with = |version: &&str| BINDINGS.map(|binding| format!("{binding}-{version}"));
    versions.iter().flat_map(with).collect()
}

/// The pairs of these clients and servers. Which operations a client has is known from the page.
pub(super) fn pairs(
    extent: Extent,
    clients: &[&'static str],
    servers: &[&'static str],
    expected: &Expected,
) -> Vec<Pair> {
    let mut all = Vec::new();
    for &client in clients {
        for from in interfaces(client) {
            for &server in servers {
                let of_server = interfaces(server).into_iter();
                all.extend(of_server.map(|to| Pair { client, from: from.clone(), server, to }));
            }
        }
    }
    match extent {
        Extent::Whole => all,
        Extent::Covering => covering(all, expected),
    }
}

/// What a pair shows: the interface that takes part, the version of the other side, and an operation.
type Shown = (Side, &'static str, String, String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

/// Takes the pair that shows most of what none has shown yet, and again until all is shown; of equals the first one, so that
/// every run takes the same.
fn covering(mut all: Vec<Pair>, expected: &Expected) -> Vec<Pair> {
    let mut operations = BTreeMap::new();
    for pair in &all {
        operations.entry(pair.client).or_insert_with(|| client_operations(expected, pair.client));
    }
    let shown = |pair: &Pair| {
        let known = operations.get(pair.client).and_then(|known| known.get(pair.from.as_str()));
        let named = known.into_iter().flatten().copied().chain([ANY]);
        let both = named.flat_map(|operation| {
            let by = |side, folder, own: &str, other: &str| -> Shown {
                (side, folder, own.to_owned(), version(other).to_owned(), operation.to_owned())
            };
            [by(Side::Server, pair.server, &pair.to, &pair.from), by(Side::Client, pair.client, &pair.from, &pair.to)]
        });
        both.collect::<BTreeSet<Shown>>()
    };
    let mut left: BTreeSet<Shown> = all.iter().flat_map(&shown).collect();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let gains = all.iter().map(|pair| shown(pair).intersection(&left).count());
        // The last of equals is what a maximum gives, so the order is reversed.
        let best = gains.enumerate().max_by_key(|(place, gain)| (*gain, std::cmp::Reverse(*place)));
        let Some((place, _)) = best else { break };
        let pair = all.remove(place);
        left = left.difference(&shown(&pair)).cloned().collect();
        taken.push(pair);
    }
    taken.sort();
    taken
}

/// `1.0` of `rest-1.0`.
fn version(interface: &str) -> &str {
    interface.rsplit('-').next().unwrap_or(interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::results_page;
    use crate::program;

    const CLIENTS: [&str; 4] = ["python-0.3.26", "python-1.3.0", "js-0.3.14", "js-1.3.0"];
    const SERVERS: [&str; 5] = ["official-0.5.3", "python-0.3.26", "python-1.3.0", "js-0.3.14", "js-1.3.0"];

    fn of_page(extent: Extent) -> (Vec<Pair>, Expected) {
        let page = std::fs::read_to_string(program::root().join(results_page::PATH)).unwrap();
        let expected = results_page::parse(&page);
        (pairs(extent, &CLIENTS, &SERVERS, &expected), expected)
    }

    /// By an interface of a server or of a client: every operation, with the version of the other side.
    fn shown(pairs: &[Pair], expected: &Expected, is_server: bool) -> BTreeMap<String, BTreeSet<String>> {
        let mut shown = BTreeMap::<String, BTreeSet<String>>::new();
        for pair in pairs {
            let operations = client_operations(expected, pair.client);
            let (own, other) = match is_server {
                true => (format!("{} {}", pair.server, pair.to), &pair.from),
                false => (format!("{} {}", pair.client, pair.from), &pair.to),
            };
            let named = operations.get(pair.from.as_str()).into_iter().flatten();
            shown.entry(own).or_default().extend(named.map(|operation| format!("{operation} {}", version(other))));
        }
        shown
    }

    #[test]
    fn few_pairs_call_every_server_with_every_operation_in_both_versions() {
        let (whole, expected) = of_page(Extent::Whole);
        let (covering, _) = of_page(Extent::Covering);
        assert_eq!(whole.len(), 12 * 14);
        assert!(covering.len() < 40, "{} pairs", covering.len());
        assert_eq!(covering, of_page(Extent::Covering).0, "every run takes the same");
        for is_server in [true, false] {
            let all = shown(&whole, &expected, is_server);
            assert_eq!(all.len(), if is_server { 14 } else { 12 });
            assert!(all.values().all(|operations| operations.len() > 30), "operations are missing: {all:?}");
            assert_eq!(shown(&covering, &expected, is_server), all);
        }
    }

    #[test]
    fn an_interface_that_is_not_on_the_page_is_called_too() {
        let pairs = pairs(Extent::Covering, &["js-1.3.0"], &["js-0.3.14", "official-0.5.3"], &Expected::new());
        let told: Vec<String> = pairs.iter().map(Pair::told).collect();
        for client in ["jsonrpc-0.3", "jsonrpc-1.0", "rest-0.3", "rest-1.0"] {
            for server in ["js-0.3.14", "official-0.5.3"] {
                let is_called = |pair: &&String| pair.starts_with(client) && pair.contains(server);
                assert!(told.iter().any(|pair| is_called(&pair)), "{client} does not call {server}: {told:?}");
            }
        }
    }

    #[test]
    fn the_names_of_a_pairs_checks_end_its_interface_with_a_hyphen() {
        let (server, to) = ("python-1.3.0", "rest-0.3".to_owned());
        let pair = Pair { client: "js-1.3.0", from: "jsonrpc-1.0".to_owned(), server, to };
        assert_eq!(pair.told(), "jsonrpc-1.0>python-1.3.0/rest-0.3");
        assert_eq!(pair.interface(), "jsonrpc-1.0>python@1.3.0/rest@0.3");
    }

    #[test]
    fn of_the_pages_names_those_are_expected_whose_own_pair_was_run() {
        let pair =
            |client, to: &str| Pair { client, from: "rest-0.3".to_owned(), server: "js-0.3.14", to: to.to_owned() };
        let run = [pair("js-1.3.0", "rest-0.3"), pair("python-0.3.26", "jsonrpc-0.3")];
        let names = ["rest-0.3>js@0.3.14/rest@0.3-get", "rest-0.3>js@0.3.14/jsonrpc@0.3-get"].map(str::to_owned);
        let of = |heading| results_page::of_pairs(heading, &names.clone().into(), &run).into_iter().collect::<Vec<_>>();
        assert_eq!(of("js-1.3.0 hub"), names[..1]);
        assert_eq!(of("python-0.3.26 hub"), names[1..]);
        assert_eq!(of("js-1.3.0 client").len(), 2, "the other parts are run whole");
    }
}
