//! Servers that want to know who calls, and identities that cannot be used.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use switchboard_egress::{ClientCertificate, Egress, Options, SendError, SetupError, TlsError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::encryption::Authority;
use crate::receiver::{LONG, Receiver, loopback, post, read_request};

fn params(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

/// A certificate and its key as files hold them.
fn pems(authority: &Authority) -> (String, String) {
    let (certificate, key) = authority.signed(&params("caller.example"));
    (certificate.pem(), key.serialize_pem())
}

/// Answers those alone whom the authority knows, with the number of certificates that they showed.
async fn asking(authority: &Authority, version: &'static SupportedProtocolVersion, protocol: &[u8]) -> Receiver {
    let mut roots = RootCertStore::empty();
    roots.add(authority.root.clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let (certificate, key) = authority.signed(&params("localhost"));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Receiver::start(move |socket| {
        let acceptor = acceptor.clone();
        async move {
            match acceptor.accept(socket).into_fallible().await {
                Ok(mut tls) => {
                    let shown = tls.get_ref().1.peer_certificates().unwrap().len();
                    read_request(&mut tls).await;
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{shown}");
                    tls.write_all(answer.as_bytes()).await.unwrap();
                }
                // Closing with something unread could overtake the alert.
                Err((_, mut socket)) => {
                    socket.shutdown().await.unwrap();
                    let _ = socket.read_to_end(&mut Vec::new()).await;
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_server_that_asks_is_shown_the_certificate() {
    let authority = Authority::new();
    let (certificate, key) = pems(&authority);
    let (stranger, strangers_key) = pems(&Authority::new());
    let both = format!("{key}{certificate}{}", authority.pem);
    let known = ClientCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let in_one = ClientCertificate::from_pem(both.as_bytes(), both.as_bytes()).unwrap();
    let unknown = ClientCertificate::from_pem(stranger.as_bytes(), strangers_key.as_bytes()).unwrap();
    for version in [&TLS12, &TLS13] {
        let first = asking(&authority, version, b"http/1.1").await;
        let second = asking(&authority, version, b"h2").await;
        let send = async |receiver: &Receiver, identity: Option<ClientCertificate>| {
            let url = format!("https://localhost:{}/", receiver.address.port());
            let extra_roots = vec![authority.root.clone()];
            let options = Options { allowlist: loopback(), extra_roots, identity, ..Options::default() };
            Egress::new(options).unwrap().send(post(&url), LONG, 10).await.map(http::Response::into_body)
        };
        assert_eq!(send(&first, Some(known.clone())).await.unwrap().as_ref(), b"1");
        assert_eq!(send(&first, Some(in_one.clone())).await.unwrap().as_ref(), b"2", "the chain goes along");
        for receiver in [&first, &second] {
            for identity in [None, Some(unknown.clone())] {
                let error = send(receiver, identity).await.unwrap_err();
                assert_eq!(error, SendError::Tls(TlsError::NotAccepted), "{version:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let authority = Authority::new();
    let (certificate, key) = pems(&authority);
    let (_, another_key) = pems(&authority);
    let nonsense = "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n";
    let torn = &certificate[..certificate.len() / 2];
    let nonsense_key = "-----BEGIN PRIVATE KEY-----\nbm9uc2Vuc2U=\n-----END PRIVATE KEY-----\n";
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nbm9uc2Vuc2U=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (chain, key, expected) in [
        ("", &*key, "the client certificate cannot be used: there is no certificate in it, write it in PEM"),
        (&*key, &*key, "the client certificate cannot be used: there is no certificate in it, write it in PEM"),
        (torn, &*key, "the client certificate cannot be used: it is not well-formed PEM"),
        (nonsense, &*key, "the client certificate cannot be used: it is not a certificate"),
        (
            &*certificate,
            "",
            "the key of the client certificate cannot be used: there is no private key in it, write it in PEM",
        ),
        (
            &*certificate,
            nonsense_key,
            "the key of the client certificate cannot be used: it must be an RSA, ECDSA or Ed25519 key",
        ),
        (
            &*certificate,
            encrypted,
            "the key of the client certificate cannot be used: it is encrypted, write it without a passphrase",
        ),
    ] {
        assert_eq!(ClientCertificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string(), expected);
    }
    let mismatch = ClientCertificate::from_pem(certificate.as_bytes(), another_key.as_bytes()).unwrap_err();
    assert_eq!(mismatch, SetupError::KeyMismatch);
    assert_eq!(
        mismatch.to_string(),
        "the key does not belong to the client certificate, which must be the first one of its chain"
    );
    let swapped = format!("{}{certificate}", authority.pem);
    assert_eq!(ClientCertificate::from_pem(swapped.as_bytes(), key.as_bytes()).unwrap_err(), SetupError::KeyMismatch);

    let identity = ClientCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(format!("{identity:?}"), "ClientCertificate { certificates: 1, .. }", "no word of the key");
    assert!(KeyPair::from_pem(&key).is_ok(), "the key itself was fine");
}
