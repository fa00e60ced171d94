//! Where the operator or the user of a command line chose the URL: no address is judged, its text still is.

use std::net::Ipv4Addr;

use switchboard_egress::{Allowlist, Egress, Options, SendError};

use crate::nameserver::{Kind, Nameserver, Record, Reply};
use crate::receiver::{LONG, Receiver, post};
use crate::vectors::{HOSTILE, label};

/// What is wrong with a URL of any origin.
const WRONG_TEXT: [&str; 8] = ["too_long", "character", "scheme", "user_info", "no_host", "host", "port", "malformed"];

fn egress(anywhere: bool, nameserver: &Nameserver) -> Egress {
    Egress::new(Options { anywhere, nameservers: vec![nameserver.address], ..Options::default() }).unwrap()
}

#[tokio::test]
async fn loopback_is_reached_by_address_and_by_name_and_only_with_permission() {
    let nameserver = Nameserver::start(|_, kind, _| match kind {
        Kind::A => Reply::Records(vec![Record::A(Ipv4Addr::LOCALHOST)]),
        Kind::Aaaa => Reply::Records(Vec::new()),
    })
    .await;
    let (receiver, requests) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let (open, guarded) = (egress(true, &nameserver), egress(false, &nameserver));
    let urls = ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]", "localhost", "agent.localhost", "agent.internal"]
        .map(|host| format!("http://{host}:{}/", receiver.address.port()));
    for url in &urls {
        let error = guarded.send(post(url), LONG, 0).await.unwrap_err();
        assert!(matches!(error, SendError::Refused(_)), "{url}: {error}");
        assert!(guarded.check(url).await.is_err(), "{url}");
    }
    assert_eq!(receiver.connections(), 0);
    let reach_all = async || {
        for url in &urls {
            open.check(url).await.unwrap_or_else(|refusal| panic!("{url}: {refusal}"));
            let answer = open.send(post(url), LONG, 0).await.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(answer.status(), 200, "{url}");
        }
    };
    reach_all().await;
    open.reload(Allowlist::default(), &[nameserver.address]);
    reach_all().await;
    assert_eq!(requests.lock().len(), 2 * urls.len());
}

#[test]
fn what_is_wrong_with_the_text_stays_wrong() {
    let open = Egress::new(Options { anywhere: true, ..Options::default() }).unwrap();
    let (mut refused, mut passed) = (0, 0);
    for (label, url) in HOSTILE.iter().flat_map(|(label, urls)| urls.iter().map(move |url| (*label, *url))) {
        let verdict = open.check_text(url).map_err(|refusal| self::label(&refusal));
        if WRONG_TEXT.contains(&label) {
            assert_eq!(verdict.unwrap_err(), label, "{url:?}");
            refused += 1;
        } else {
            assert!(verdict.is_ok(), "{url:?} is {label} although nothing is judged: {verdict:?}");
            passed += 1;
        }
    }
    assert!(refused > 40 && passed > 100, "{refused} refused, {passed} passed");
}
