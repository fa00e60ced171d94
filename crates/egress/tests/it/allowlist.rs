//! What operators write, what it lets through, and what it leaves closed.

use std::net::IpAddr;

use switchboard_egress::{Allowlist, AllowlistError, Egress, Options, UrlRefusal};

use crate::receiver::SHORT;

fn egress(hosts: &[&str], cidrs: &[&str]) -> Egress {
    let allowlist = Allowlist::parse(hosts, cidrs).unwrap();
    Egress::new(Options { allowlist, ..Options::default() }).unwrap()
}

/// Hosts, ranges, what passes by them, and what comes close and does not.
type Row = (&'static [&'static str], &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const ROWS: &[Row] = &[
    (
        &["localhost"],
        &[],
        &["http://localhost/", "http://LOCALHOST.:9000/", "https://%6cocalhost/"],
        &["http://a.localhost/", "http://127.0.0.1/", "http://[::1]/"],
    ),
    (
        &["localhost:9000"],
        &[],
        &["http://localhost:9000/", "https://localhost:9000/"],
        &["http://localhost/", "http://localhost:9001/", "http://127.0.0.1:9000/"],
    ),
    (&["LOCALHOST.:80"], &[], &["http://localhost/"], &["https://localhost/"]),
    (&["*.localhost"], &[], &["http://a.localhost/", "http://a.b.localhost/"], &["http://localhost/"]),
    (
        &["127.0.0.1"],
        &[],
        &["http://127.0.0.1/", "http://127.1:8080/", "http://2130706433./"],
        &["http://127.0.0.2/", "http://localhost/", "http://[::ffff:127.0.0.1]/", "http://[::1]/"],
    ),
    (&["127.1:8080"], &[], &["http://127.0.0.1:8080/"], &["http://127.0.0.1/"]),
    (&["::1"], &[], &["http://[::1]/", "http://[0:0::1]:8080/"], &["http://127.0.0.1/", "http://[::2]/"]),
    (&["[fd00::1]:8080"], &[], &["http://[fd00:0::1]:8080/"], &["http://[fd00::1]/", "http://[fd00::2]:8080/"]),
    (
        &[],
        &["127.0.0.0/8"],
        &[
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost/",
            "http://a.localhost/",
        ],
        &["http://[::1]/", "http://10.0.0.1/", "http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/"],
    ),
    (&[], &["::1"], &["http://[::1]/", "http://localhost/"], &["http://[::2]/", "http://127.0.0.1/"]),
    (
        &[],
        &["10.1.2.3", "192.168.7.9/24"],
        &["http://10.1.2.3/", "http://192.168.7.0/", "http://192.168.7.255/"],
        &["http://10.1.2.4/", "http://192.168.6.255/", "http://192.168.8.0/"],
    ),
    (&[], &["::ffff:10.0.0.0/104"], &["http://10.9.9.9/", "http://[::ffff:10.0.0.1]/"], &["http://172.16.0.1/"]),
    (&[], &["fd00::/8"], &["http://[fd00::1]/", "http://[fdff::1]/"], &["http://[fc00::1]/", "http://[fe80::1]/"]),
    (&[], &["64:ff9b::/96"], &["http://[64:ff9b::8.8.8.8]/"], &["http://[64:ff9b:1::8.8.8.8]/", "http://127.0.0.1/"]),
    (&[], &["0.0.0.0/0"], &["http://169.254.169.254/", "http://127.0.0.1/"], &["http://[::1]/", "http://[fd00::1]/"]),
    // Permission to reach an address is not permission to write a URL as one likes.
    (
        &["localhost", "127.0.0.1"],
        &["0.0.0.0/0", "::/0"],
        &["http://localhost/"],
        &[
            "ftp://localhost/",
            "http://user@localhost/",
            "http://localhost:0/",
            "http://localhost/ ",
            "http:/localhost/",
        ],
    ),
];

#[tokio::test]
async fn entries_let_through_what_they_name_and_nothing_beside_it() {
    for (hosts, cidrs, pass, refused) in ROWS {
        let egress = egress(hosts, cidrs);
        for url in *pass {
            egress.check(url).await.unwrap_or_else(|refusal| panic!("{url} with {hosts:?} {cidrs:?}: {refusal}"));
        }
        for url in *refused {
            assert!(egress.check(url).await.is_err(), "{url} passed with {hosts:?} {cidrs:?}");
        }
    }
}

#[tokio::test]
async fn a_host_allowed_by_name_is_not_looked_up_when_it_is_registered() {
    // No nameserver listens on the discard port of loopback: whatever is looked up fails.
    let allowlist = Allowlist::parse(["receiver.internal", "*.hooks.internal"], [] as [&str; 0]).unwrap();
    let nameservers = vec!["127.0.0.1:9".parse().unwrap()];
    let egress = Egress::new(Options { allowlist, nameservers, dns_timeout: SHORT, ..Options::default() }).unwrap();
    for url in ["http://receiver.internal/", "http://RECEIVER.internal.:8080/", "http://a.b.hooks.internal/"] {
        egress.check(url).await.unwrap_or_else(|refusal| panic!("{url}: {refusal}"));
    }
    for url in ["http://hooks.internal/", "http://xhooks.internal/", "http://a.receiver.internal/"] {
        assert!(matches!(egress.check(url).await, Err(UrlRefusal::Unresolved(_))), "{url}");
    }
}

#[test]
fn a_bad_entry_is_named() {
    for entry in [
        "",
        "*",
        "*.",
        "http://a.internal",
        "a.internal/path",
        "a b",
        "a:0",
        "a:x",
        "*.127.0.0.1",
        "a..b",
        "[::1",
        "user@a",
    ] {
        let error = Allowlist::parse([entry], [] as [&str; 0]).unwrap_err();
        assert_eq!(error, AllowlistError::Host { entry: entry.to_owned() });
        assert!(error.to_string().contains(&format!("\"{entry}\"")), "{error}");
    }
    for entry in ["", "10.0.0.0/33", "10.0.0/8", "localhost", "::/129", "10.0.0.0/-1", "127.0.0.1:80"] {
        let error = Allowlist::parse([] as [&str; 0], [entry]).unwrap_err();
        assert_eq!(error, AllowlistError::Cidr { entry: entry.to_owned() });
    }
}

#[test]
fn the_environment_is_read_leniently() {
    let (list, bad) = Allowlist::from_text(" a.internal, b:80\tb:x  ,,", "10.0.0.0/8,nonsense 192.168.1.1\n");
    assert_eq!(list, Allowlist::parse(["a.internal", "b:80"], ["10.0.0.0/8", "192.168.1.1/32"]).unwrap());
    assert_eq!(bad, [AllowlistError::Host { entry: "b:x".into() }, AllowlistError::Cidr { entry: "nonsense".into() }]);

    let (nothing, bad) = Allowlist::from_text("", " ");
    assert!(nothing.is_empty() && bad.is_empty());

    let both = nothing.merge(list);
    let inside = |text: &str| both.allows_address(text.parse::<IpAddr>().unwrap());
    assert!(inside("10.2.3.4") && inside("::ffff:192.168.1.1") && !inside("192.168.1.2"));
}
