//! Names that lead inside, by every trick a nameserver has.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use switchboard_egress::{Allowlist, DnsError, Egress, Options, SendError, UrlRefusal};

use crate::nameserver::{Kind, Nameserver, Record, Reply};
use crate::receiver::{LONG, Receiver, SHORT, loopback_egress, post};

/// All that is told of a name, whatever is wrong with it.
const NOWHERE_PUBLIC: &str = "the host cannot be resolved to a public address";

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn guarded(nameserver: &Nameserver) -> Egress {
    Egress::new(Options { nameservers: vec![nameserver.address], ..Options::default() }).unwrap()
}

fn records(addresses: &[&str], kind: Kind) -> Reply {
    let parsed = addresses.iter().map(|text| text.parse().unwrap());
    let records = parsed.filter_map(|address| match (address, kind) {
        (IpAddr::V4(address), Kind::A) => Some(Record::A(address)),
        (IpAddr::V6(address), Kind::Aaaa) => Some(Record::Aaaa(address)),
        _ => None,
    });
    Reply::Records(records.collect())
}

#[tokio::test]
async fn a_name_that_resolves_inside_after_the_check_is_not_connected_to() {
    let nameserver = Nameserver::start(|_, kind, times| match (kind, times) {
        (Kind::A, 0) => records(&["93.184.215.14"], kind),
        (Kind::A, _) => records(&["127.0.0.1"], kind),
        (Kind::Aaaa, _) => records(&[], kind),
    })
    .await;
    let (receiver, requests) = Receiver::answering(OK).await;
    let url = format!("http://rebind.example:{}/secret?token=1", receiver.address.port());

    let egress = guarded(&nameserver);
    let target = egress.check(&url).await.unwrap();
    assert_eq!(target.origin(), format!("http://rebind.example:{}", receiver.address.port()));
    let error = egress.send(post(&url), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Refused(UrlRefusal::NotPublic));
    assert_eq!(error.to_string(), "refused: the host resolves to an address that is not public");
    assert_eq!(receiver.connections(), 0);

    // The same name, server and receiver with permission: so it was the guard that kept it out.
    let permitted = loopback_egress(vec![nameserver.address]);
    assert_eq!(permitted.send(post(&url), LONG, 0).await.unwrap().status(), 200);
    assert_eq!(receiver.connections(), 1);
    assert!(requests.lock()[0].contains(&format!("host: rebind.example:{}\r\n", receiver.address.port())));
}

#[tokio::test]
async fn the_address_that_was_judged_is_the_one_that_is_called() {
    // Would anything look the name up again, it would be given an address that is refused.
    let nameserver = Nameserver::start(|_, kind, times| match (kind, times) {
        (Kind::A, 0) => records(&["127.0.0.1"], kind),
        (Kind::A, _) => records(&["10.0.0.1"], kind),
        (Kind::Aaaa, _) => records(&[], kind),
    })
    .await;
    let (receiver, _) = Receiver::answering(OK).await;
    let egress = loopback_egress(vec![nameserver.address]);
    let url = format!("http://once.example:{}/", receiver.address.port());
    assert_eq!(egress.send(post(&url), LONG, 0).await.unwrap().status(), 200);
    assert_eq!(nameserver.asked(), 2, "one question for each family");
    let refused = egress.check(&url).await.unwrap_err();
    assert_eq!(refused, UrlRefusal::NotPublic);
}

/// Answers that are refused as a whole, although a public address is among them.
const LEAD_INSIDE: &[(&str, &[&str])] = &[
    ("loopback.example", &["127.0.0.1"]),
    ("private.example", &["10.0.0.1"]),
    ("metadata.google.internal", &["169.254.169.254"]),
    ("carrier.example", &["100.64.0.1"]),
    ("zero.example", &["0.0.0.0"]),
    ("platform.example", &["168.63.129.16"]),
    ("public-first.example", &["93.184.215.14", "127.0.0.1"]),
    ("private-first.example", &["192.168.0.1", "93.184.215.14"]),
    ("last-of-many.example", &["93.184.215.14", "93.184.215.15", "93.184.215.16", "93.184.215.17", "172.16.0.1"]),
    ("six-loopback.example", &["93.184.215.14", "::1"]),
    ("six-private.example", &["93.184.215.14", "fd00:ec2::254"]),
    ("six-mapped.example", &["93.184.215.14", "::ffff:127.0.0.1"]),
    ("six-compatible.example", &["93.184.215.14", "::127.0.0.1"]),
    ("six-translated.example", &["93.184.215.14", "64:ff9b::a9fe:a9fe"]),
    ("six-to-four.example", &["93.184.215.14", "2002:7f00:1::1"]),
    ("six-only.example", &["fe80::1"]),
    ("six-mixed.example", &["2606:4700::1", "fc00::1"]),
    ("four-private-six-public.example", &["10.0.0.1", "2606:4700::1"]),
];

#[tokio::test]
async fn one_address_inside_refuses_them_all_and_no_word_tells_which() {
    let nameserver = Nameserver::start(|name, kind, _| {
        let (_, addresses) = LEAD_INSIDE.iter().find(|(known, _)| *known == name).unwrap();
        records(addresses, kind)
    })
    .await;
    let egress = guarded(&nameserver);
    for (name, addresses) in LEAD_INSIDE {
        let url = format!("http://{name}:9/secret");
        let refusal = egress.check(&url).await.expect_err(name);
        assert_eq!(refusal, UrlRefusal::NotPublic, "{name} {addresses:?}");
        assert_eq!(refusal.to_string(), NOWHERE_PUBLIC);
        assert_eq!(refusal.detail().to_string(), "the host resolves to an address that is not public");
        assert!(refusal.is_private());
        let error = egress.send(post(&url), LONG, 0).await.unwrap_err();
        assert_eq!(error, SendError::Refused(UrlRefusal::NotPublic), "{name}");
        assert!(matches!(error, SendError::Refused(_)), "{error}");
    }
}

#[tokio::test]
async fn an_alias_is_judged_by_where_it_ends() {
    let nameserver = Nameserver::start(|name, kind, _| match (name, kind) {
        ("alias.example", Kind::A) => Reply::Records(vec![
            Record::Alias("step.example"),
            Record::Alias("end.internal"),
            Record::A(Ipv4Addr::new(10, 0, 0, 7)),
        ]),
        ("outside.example", Kind::A) => {
            Reply::Records(vec![Record::Alias("end.example"), Record::A(Ipv4Addr::new(93, 184, 215, 14))])
        }
        // Only the alias: the next question decides.
        ("bare.example", Kind::A) => Reply::Records(vec![Record::Alias("end.internal")]),
        ("end.internal", Kind::A) => records(&["10.0.0.7"], kind),
        _ => Reply::Records(Vec::new()),
    })
    .await;
    let egress = guarded(&nameserver);
    assert_eq!(egress.check("http://alias.example/").await, Err(UrlRefusal::NotPublic));
    assert_eq!(egress.check("http://bare.example/").await, Err(UrlRefusal::NotPublic));
    egress.check("http://outside.example/").await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_resolved_is_not_called() {
    let nameserver = Nameserver::start(|name, kind, _| match (name, kind) {
        ("absent.example", _) => Reply::NoSuchName,
        ("failing.example", _) => Reply::Failure,
        ("silent.example", _) => Reply::Silence,
        ("half.example", Kind::A) => records(&["93.184.215.14"], kind),
        ("half.example", Kind::Aaaa) => Reply::Failure,
        _ => records(&[], kind),
    })
    .await;
    let egress = Egress::new(Options {
        nameservers: vec![nameserver.address],
        dns_timeout: Duration::from_secs(5),
        ..Options::default()
    })
    .unwrap();
    for (name, expected) in [
        ("absent.example", DnsError::NoSuchName),
        ("failing.example", DnsError::Failed),
        ("empty.example", DnsError::NoAddress),
    ] {
        let url = format!("http://{name}/secret");
        let refusal = egress.check(&url).await.unwrap_err();
        assert_eq!(refusal, UrlRefusal::Unresolved(expected.clone()), "{name}");
        assert_eq!(refusal.to_string(), NOWHERE_PUBLIC, "{name}: the caller does not learn which names there are");
        assert_eq!(refusal.detail().to_string(), format!("the host cannot be resolved: {expected}"));
        assert!(refusal.is_private(), "{name}: an entry would let it pass, as it would one that leads inside");
        assert_eq!(egress.send(post(&url), LONG, 0).await.unwrap_err(), SendError::Dns(expected), "{name}");
    }
    // One family is enough: only what was found is called.
    egress.check("http://half.example/").await.unwrap();

    let hasty =
        Egress::new(Options { nameservers: vec![nameserver.address], dns_timeout: SHORT, ..Options::default() })
            .unwrap();
    let refusal = hasty.check("http://silent.example/").await.unwrap_err();
    assert_eq!(refusal, UrlRefusal::Unresolved(DnsError::TimedOut));
    assert_eq!(refusal.to_string(), NOWHERE_PUBLIC);
    let error = hasty.send(post("http://silent.example/"), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Dns(DnsError::TimedOut));
    assert_eq!(error.to_string(), "the host cannot be resolved: no nameserver answered in time");
}

#[tokio::test]
async fn a_host_allowed_by_name_may_resolve_to_anything() {
    let nameserver = Nameserver::start(|_, kind, _| records(&["127.0.0.1"], kind)).await;
    let (receiver, _) = Receiver::answering(OK).await;
    let port = receiver.address.port();
    let allowlist = Allowlist::parse([format!("receiver.internal:{port}")], [] as [&str; 0]).unwrap();
    let egress =
        Egress::new(Options { allowlist, nameservers: vec![nameserver.address], ..Options::default() }).unwrap();
    let send = async |url: String| egress.send(post(&url), LONG, 0).await;
    assert_eq!(send(format!("http://receiver.internal:{port}/")).await.unwrap().status(), 200);
    assert_eq!(send(format!("http://RECEIVER.internal.:{port}/")).await.unwrap().status(), 200);
    for other in [format!("http://other.internal:{port}/"), "http://receiver.internal:9/".to_owned()] {
        assert_eq!(send(other).await.unwrap_err(), SendError::Refused(UrlRefusal::NotPublic));
    }
}
