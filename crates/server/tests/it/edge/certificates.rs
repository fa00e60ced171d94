//! The files of a certificate: what is wrong with them, and what happens when they change.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use switchboard_server::{Tls, TlsPart};

use crate::edge::secured::{Folder, Issued, Secured, trusting};
use crate::edge::traces::Lines;

/// What is said of two files: which one, what is wrong, what would be right.
fn refused(folder: &Folder) -> Vec<(TlsPart, String, &'static str)> {
    let errors = Tls::open(folder.certificate(), folder.key()).unwrap_err();
    errors.iter().map(|error| (error.part, error.to_string(), error.right)).collect()
}

#[test]
fn files_that_are_no_pair_are_refused_by_name() {
    use TlsPart::{Certificate, Key};
    let (one, two) = (Issued::new(), Issued::new());
    let folder = Folder::with(&one);
    assert!(Tls::open(folder.certificate(), folder.key()).is_ok());
    let cut = one.certificate_pem.replace("-----END", "");
    let garbled = one.key_pem.replacen("M", "*", 1);
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let older = locked.replace("ENCRYPTED", "RSA").replacen('\n', "\nProc-Type: 4,ENCRYPTED\n", 1);
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (certificate, key, part, wrong, right) in [
        (&*two.certificate_pem, &*one.key_pem, Key, "key.pem does not belong to the first certificate in", "made for"),
        (&one.key_pem, &one.key_pem, Certificate, "cert.pem holds no certificate", "BEGIN CERTIFICATE"),
        ("", &one.key_pem, Certificate, "cert.pem holds no certificate", "BEGIN CERTIFICATE"),
        (&cut, &one.key_pem, Certificate, "cert.pem is not PEM that can be read (a BEGIN line", "copy the file again"),
        (no_certificate, &one.key_pem, Certificate, "cert.pem cannot be used (", "X.509"),
        (&one.certificate_pem, &one.certificate_pem, Key, "key.pem holds no private key", "BEGIN PRIVATE KEY"),
        (&one.certificate_pem, &garbled, Key, "key.pem is not PEM that can be read (what", "copy the file again"),
        (&one.certificate_pem, locked, Key, "key.pem needs a passphrase", "without a passphrase"),
        (&one.certificate_pem, &older, Key, "key.pem needs a passphrase", "without a passphrase"),
        (&one.certificate_pem, no_key, Key, "key.pem cannot be used (", "ECDSA"),
    ] {
        folder.write(certificate, key);
        let said = refused(&folder);
        let [(blamed, sentence, advice)] = said.as_slice() else { panic!("{wrong}: {said:?}") };
        assert!(*blamed == part && sentence.contains(wrong) && advice.contains(right), "{wrong}: {said:?}");
    }
    std::fs::remove_file(folder.certificate()).unwrap();
    std::fs::remove_file(folder.key()).unwrap();
    let both = refused(&folder);
    assert_eq!(both.iter().map(|(part, ..)| *part).collect::<Vec<_>>(), [Certificate, Key], "{both:?}");
    assert!(
        both.iter().all(|(_, wrong, right)| wrong.contains("cannot be read") && right.contains("exists")),
        "{both:?}"
    );
}

/// The certificate that a new connection of a client that trusts `issued` is shown; nothing if it is another one.
async fn shown(secured: &Secured, issued: &Issued) -> Option<CertificateDer<'static>> {
    let stream = secured.shake_hands(trusting(issued)).await.ok()?;
    Some(stream.get_ref().1.peer_certificates().unwrap()[0].clone())
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart_and_a_broken_one_never() {
    let lines = Lines::of_this_process();
    let secured = Secured::start().await;
    let (first, second, third) = (&secured.issued, Issued::new(), Issued::new());
    let mut old = secured.connect().await;
    assert_eq!(shown(&secured, first).await.as_ref(), Some(&first.certificate));

    secured.folder.write(&second.certificate_pem, &second.key_pem);
    assert_eq!(shown(&secured, &second).await.as_ref(), Some(&second.certificate));
    assert_eq!(shown(&secured, first).await, None);

    // As if the renewal were half done, then gone wrong, then undone, then whole.
    secured.folder.write(&third.certificate_pem, &second.key_pem);
    assert_eq!(shown(&secured, &second).await.as_ref(), Some(&second.certificate));
    secured.folder.write("", "");
    assert_eq!(shown(&secured, &second).await.as_ref(), Some(&second.certificate));
    std::fs::remove_file(secured.folder.key()).unwrap();
    for _ in 0..3 {
        assert_eq!(shown(&secured, &second).await.as_ref(), Some(&second.certificate));
    }
    let missing = format!("{} cannot be read", secured.folder.key().display());
    assert_eq!(lines.written().matches(&missing).count(), 1, "the log says it once");
    secured.folder.write(&third.certificate_pem, &third.key_pem);
    assert_eq!(shown(&secured, &third).await.as_ref(), Some(&third.certificate));

    let patient = Secured::with(|options| {
        let tls = Tls::open(secured.folder.certificate(), secured.folder.key()).unwrap();
        options.tls = Some(Arc::new(tls.reload_every(Duration::MAX)));
    })
    .await;
    secured.folder.write(&second.certificate_pem, &second.key_pem);
    assert_eq!(shown(&patient, &third).await.as_ref(), Some(&third.certificate), "the files are left alone till then");

    old.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(old.reply().await.status, 200, "who is connected stays connected");
}
