//! The types of settings: what each takes, how it is shown again, and what it refuses.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};
use switchboard_host::config::address::{AllowedHost, BaseUrl, BindAddress, Nameserver, Network, WebOrigin};
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::document::Content;
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::size::{Count, Size};
use switchboard_host::config::suggestion::{did_you_mean, nearest};
use switchboard_host::config::time_span::{TimeLimit, TimeSpan};
use switchboard_host::config::value::{Scalar, Value};
use switchboard_host::config::{Overrides, Workspace};

/// What a text is read as, in the form in which settings are shown.
fn read<T: Scalar + Serialize>(text: &str) -> Result<Json, Mismatch> {
    T::from_text(text).map(|value| serde_json::to_value(value).unwrap())
}

#[track_caller]
fn takes<T: Scalar + Serialize>(texts: &[(&str, &str)]) {
    for (text, shown) in texts {
        assert_eq!(read::<T>(text), Ok(json!(shown)), "{text}");
    }
}

/// Each text with the end of the sentence that says what is wrong with it.
#[track_caller]
fn refuses<T: Scalar + Serialize>(texts: &[&str], because: &str) {
    for text in texts {
        assert_eq!(read::<T>(text).unwrap_err().wrong, format!("\"{text}\" {because}"));
    }
}

#[test]
fn times_and_sizes_have_a_unit() {
    takes::<TimeSpan>(&["250ms", "30s", "10m", "2h", "7d", "0s"].map(|text| (text, text)));
    assert_eq!(TimeSpan::from_text("90s").unwrap().duration(), Duration::from_secs(90));
    assert_eq!(TimeSpan::from_text("24h").unwrap(), TimeSpan::from_days(1));
    refuses::<TimeSpan>(&["30"], "has no unit");
    refuses::<TimeSpan>(&["5min"], "has a unit that does not exist");
    refuses::<TimeSpan>(&["-5s", "none"], "is not a length of time");
    refuses::<TimeSpan>(&["99999999999999999999s", "36501d"], "is longer than a hundred years");
    assert_eq!(TimeLimit::from_text("none").unwrap().duration(), None);
    assert_eq!(TimeLimit::from_text("5m").unwrap().duration(), Some(Duration::from_secs(300)));
    refuses::<TimeLimit>(&["0s"], "leaves no time at all");

    takes::<Size>(&["1B", "64KiB", "10MiB", "10GiB", "3TiB", "1025B"].map(|text| (text, text)));
    assert_eq!(Size::from_text("64KiB").unwrap().bytes(), 65_536);
    assert_eq!(Size::from_mebibytes(8).length(), 8_388_608);
    refuses::<Size>(&["1024"], "has no unit");
    refuses::<Size>(&["10MB"], "has a unit that does not exist");
    refuses::<Size>(&["much"], "is not a size");
    refuses::<Size>(&["0B"], "leaves no room at all");
    refuses::<Size>(&["9000000TiB"], "is larger than any disk");

    assert_eq!(Count::from_text("1000").unwrap().get(), 1000);
    assert_eq!(Count::from_text("0").unwrap_err().wrong, "0 leaves room for nothing");
    refuses::<Count>(&["-1", "+1"], "is not a whole number");
    assert_eq!(Count::from_text("99999999999").unwrap_err().wrong, "99999999999 is more than 2147483647");
}

#[test]
fn addresses_are_what_their_setting_needs() {
    takes::<BindAddress>(&[("localhost:80", "127.0.0.1:80"), ("[::1]:0", "[::1]:0")]);
    let no_port = ["8080", ":8080", "localhost", "127.0.0.1", "127.0.0.1:99999", "example.com:80"];
    refuses::<BindAddress>(&no_port, "is not an address with a port");

    takes::<BaseUrl>(&[("https://agents.example.com/", "https://agents.example.com")]);
    takes::<BaseUrl>(&[("http://localhost:1/fleet", "http://localhost:1/fleet")]);
    refuses::<BaseUrl>(&["agents.example.com", "ftp://a", "https://", "https://user@a"], "is not a web address");
    refuses::<BaseUrl>(&["https://a?b", "https://a#b"], "has a query or a fragment, and cards put paths behind it");

    takes::<WebOrigin>(&[("*", "*"), ("https://App.example.com:8443", "https://app.example.com:8443")]);
    refuses::<WebOrigin>(&["app.example.com", "null"], "is not an origin");
    refuses::<WebOrigin>(&["https://a/", "https://a/b"], "is more than an origin");

    let hosts = ["hooks.internal", "hooks.internal:8080", "*.internal", "127.0.0.1:9000", "[::1]:80", "::1"];
    takes::<AllowedHost>(&hosts.map(|host| (host, host)));
    let no_hosts = ["http://hooks.internal", "hooks.internal/path", "a b", "", "hooks:0", "hooks:99999", "*.127.0.0.1"];
    refuses::<AllowedHost>(&no_hosts, "is not a host");

    takes::<Nameserver>(&["10.0.0.2", "10.0.0.2:5353", "fd00::2", "[fd00::2]:5353"].map(|text| (text, text)));
    assert_eq!(Nameserver::from_text("fd00::2").unwrap().0.to_string(), "[fd00::2]:53");
    let no_addresses = ["dns.internal", "10.0.0.2:0", "10.0.0.2:99999", "udp://10.0.0.2", ""];
    refuses::<Nameserver>(&no_addresses, "is not an address");
}

#[test]
fn a_network_knows_its_members_and_begins_where_it_says() {
    let contains = |network: &str, address: &str| {
        Network::from_text(network).unwrap().0.contains(&address.parse::<IpAddr>().unwrap())
    };
    assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
    assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
    assert!(contains("::/0", "fd00::1") && contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe00::1"));
    assert!(contains("192.0.2.7/32", "192.0.2.7") && !contains("192.0.2.7/32", "192.0.2.6"));
    for (text, network) in [("10.0.0.1", "10.0.0.1/32"), ("fd00::1", "fd00::1/128"), ("0.0.0.0", "0.0.0.0/32")] {
        takes::<Network>(&[(text, network), (network, network)]);
    }
    refuses::<Network>(&["10.0.0", "10.0.0.0/33", "x/8", "::/129", "10.0.0.1/", "/8", ""], "is not a network");
    for (text, whole, one) in [
        ("10.0.0.1/8", "10.0.0.0/8", "10.0.0.1/32"),
        ("10.0.0.1/31", "10.0.0.0/31", "10.0.0.1/32"),
        ("10.0.0.1/0", "0.0.0.0/0", "10.0.0.1/32"),
        ("fd12::1/8", "fd00::/8", "fd12::1/128"),
        ("::1/0", "::/0", "::1/128"),
    ] {
        refuses::<Network>(&[text], "is an address inside a network");
        let right = Network::from_text(text).unwrap_err().right;
        assert_eq!(right, format!("write {whole} for the whole network or {one} for the one address"));
    }
}

#[test]
fn names_of_agents_are_plain_path_segments() {
    for name in ["a", "code-review", "7up", "a--", &"x".repeat(63)] {
        takes::<AgentName>(&[(name, name)]);
    }
    for name in ["", "-a", "Echo", "a_b", "a.b", "ä", "a/b", &"x".repeat(64)] {
        refuses::<AgentName>(&[name], "cannot be an agent's name");
    }
    let paths =
        ["v1", "tasks", "jsonrpc", "message:send", "message:stream", "extendedAgentCard", ".well-known", "agents"];
    refuses::<AgentName>(&paths, "is reserved, because it means something else where agents are named");
    // `/api/agents/runtime`, and the target that stands for every agent.
    refuses::<AgentName>(&["runtime", "all"], "is reserved, because it means something else where agents are named");
}

#[test]
fn lists_come_from_brackets_and_from_commas_and_truth_is_written_out() {
    let commas = Content::Text("a.example, b.example,".into());
    assert_eq!(Vec::<String>::from_content(&commas).unwrap(), ["a.example", "b.example"]);
    assert_eq!(Vec::<String>::from_content(&Content::Mapping(Vec::new())).unwrap_err().wrong, "is a mapping");
    assert_eq!(read::<bool>("true"), Ok(json!(true)));
    // `yes` is text in YAML 1.2, and would be a guess here.
    refuses::<bool>(&["yes"], "is neither true nor false");
    assert!(Option::<String>::from_content(&Content::Empty).unwrap().is_none());
    assert!(String::from_content(&Content::Empty).is_err());
}

#[test]
fn the_word_that_was_meant_is_found_or_none_is_named() {
    let keys = ["bind", "publicBaseUrl", "headerTimeout", "maxAge"];
    assert_eq!(nearest("bnid", keys), Some("bind"));
    assert_eq!(nearest("max_age", keys), Some("maxAge"));
    assert_eq!(nearest("publicBaseURL", keys), Some("publicBaseUrl"));
    assert_eq!(nearest("headerTimeut", keys), Some("headerTimeout"));
    assert_eq!(nearest("colour", keys), None);
    assert_eq!(nearest("x", ["y"]), None, "one letter replaced by another is no likeness");
    assert_eq!(did_you_mean("colour", &["a", "b"], "use one of"), "use one of a, b");
}

#[test]
fn variables_are_filled_in_as_a_shell_does() {
    let environment = [("HOST", "example.com"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let overrides = Overrides { environment: environment.into(), ..Overrides::default() };
    let filled = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("switchboard.yaml"), format!("store: {{ dataDir: '{text}' }}\n")).unwrap();
        Workspace::settings_only(folder.path(), &overrides).map(|workspace| workspace.config.store.data_dir)
    };
    for (text, shown) in [
        ("plain $HOST {x}", "plain $HOST {x}"),
        ("https://${HOST}/a", "https://example.com/a"),
        ("${HOST}:${PORT:-41242}", "example.com:41242"),
        ("[${EMPTY}]", "[]"),
        ("${EMPTY:-given}", "given"),
        ("a${NOTHING:-}", "a"),
        ("$${HOST} ${HOST}", "${HOST} example.com"),
    ] {
        assert_eq!(filled(text).unwrap().to_str(), Some(shown), "{text}");
    }
    for (text, wrong) in [
        ("${PORT}", "the environment variable PORT is not set"),
        ("${PORT", "\"${PORT\" opens ${ and does not close it"),
        ("${A B}", "\"A B\" is not a variable name"),
    ] {
        assert_eq!(filled(text).unwrap_err().0[0].wrong, wrong);
    }
}
