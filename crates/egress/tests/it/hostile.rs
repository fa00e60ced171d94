//! What people have tried on others: every one refused, each for the reason we mean.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use switchboard_egress::{Egress, MAXIMUM_LENGTH, Options, SendError, Target, UrlRefusal};

use crate::vectors::{HOSTILE, PUBLIC, label};

#[tokio::test]
async fn every_hostile_url_is_refused_for_the_reason_we_mean() {
    let egress = Egress::new(Options::default()).unwrap();
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    for (label, url) in HOSTILE.iter().flat_map(|(label, urls)| urls.iter().map(move |url| (*label, *url))) {
        assert!(seen.insert(url), "twice in the table: {url:?}");
        let text = egress.check_text(url).map_err(|refusal| self::label(&refusal));
        if text.as_ref().err().map(String::as_str) != Some(label) {
            wrong.push(format!("{url:?} should be {label}, is {text:?}"));
            // What the text check lets through would really be called below, from the machine that runs this.
            continue;
        }
        let full = egress.check(url).await.map_err(|refusal| self::label(&refusal));
        if full != text {
            wrong.push(format!("{url:?} is {text:?} by its text and {full:?} by the full check"));
        }
        // What the HTTP library can hold at all must not get out either.
        let Ok(uri) = url.parse::<Uri>() else { continue };
        let request = Request::post(uri).body(Bytes::new()).unwrap();
        let sent = egress.send(request, Duration::from_secs(20), 0).await;
        if !matches!(sent, Err(SendError::Refused(_))) {
            wrong.push(format!("{url:?} was sent: {sent:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen.len() >= 220, "only {} vectors", seen.len());
}

#[test]
fn public_ones_pass_and_keep_their_spelling_once_normalised() {
    let egress = Egress::new(Options::default()).unwrap();
    for (url, origin) in PUBLIC {
        let target = egress.check_text(url).unwrap_or_else(|refusal| panic!("{url}: {refusal}"));
        assert_eq!(target.origin(), *origin, "{url}");
        assert_eq!(egress.check_text(target.url()).as_ref(), Ok(&target), "{url}");
        assert!(!target.url().contains('#'), "{url}");
    }
}

#[test]
fn a_url_is_bounded_before_and_after_it_is_normalised() {
    let base = "http://good.example/";
    let fits = format!("{base}{}", "a".repeat(MAXIMUM_LENGTH - base.len()));
    assert!(Target::parse(&fits).is_ok());
    assert_eq!(Target::parse(&format!("{fits}a")), Err(UrlRefusal::TooLong { length: MAXIMUM_LENGTH + 1 }));
    let grows = format!("{base}{}", "é".repeat(600));
    assert!(grows.len() < MAXIMUM_LENGTH);
    assert_eq!(Target::parse(&grows), Err(UrlRefusal::TooLong { length: base.len() + 600 * 6 }));
    let name = format!("http://{}example/", "long-label.".repeat(24));
    assert_eq!(Target::parse(&name), Err(UrlRefusal::Host));
}

#[test]
fn words_for_the_caller_and_words_for_the_operator() {
    let egress = Egress::new(Options::default()).unwrap();
    let literal = egress.check_text("http://10.1.2.3/secret?token=1").unwrap_err();
    assert_eq!(literal.to_string(), "the host is a private address");
    assert!(literal.is_private());
    let scheme = egress.check_text("ftp://good.example/secret").unwrap_err();
    assert_eq!(scheme.to_string(), "the url must begin with http:// or https://");
    assert!(!scheme.is_private());
    let printed = format!("{:?}", egress.check_text("https://good.example/secret?token=1").unwrap());
    assert_eq!(printed, "Target(\"https://good.example:443\")");
}
