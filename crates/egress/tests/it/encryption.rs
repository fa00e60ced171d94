//! HTTPS: who is believed, who is not, and which protocol is spoken.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use switchboard_egress::{Egress, Options, SendError, SetupError, TimeoutPhase, TlsError};
use tokio_rustls::TlsAcceptor;

use crate::receiver::{LONG, Receiver, SHORT, loopback, post, read_request};

/// A certificate authority that only the test trusts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) root: CertificateDer<'static>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let (root, pem) = (certificate.der().clone(), certificate.pem());
        Self { issuer: Issuer::new(params, key), root, pem }
    }

    /// A certificate and its key.
    pub(crate) fn signed(&self, params: &CertificateParams) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// What a server with such a certificate needs.
    pub(crate) fn acceptor(&self, params: &CertificateParams, protocols: &[&[u8]]) -> TlsAcceptor {
        let (certificate, key) = self.signed(params);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A receiver with a certificate for the name, which says in its answer which version it was asked in.
    pub(crate) async fn receiver(&self, name: &str, protocols: &[&[u8]]) -> Receiver {
        self.receiver_with(&CertificateParams::new([name.to_owned()]).unwrap(), protocols).await
    }

    async fn receiver_with(&self, params: &CertificateParams, protocols: &[&[u8]]) -> Receiver {
        let acceptor = self.acceptor(params, protocols);
        Receiver::start(move |socket| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(tls) = acceptor.accept(socket).await else { return };
                let is_second = tls.get_ref().1.alpn_protocol() == Some(b"h2");
                let service = service_fn(async |request: http::Request<Incoming>| {
                    let body = Full::new(Bytes::from(format!("{:?}", request.version())));
                    Ok::<_, Infallible>(Response::new(body))
                });
                // The client may leave at any time; that is its answer's business, not ours.
                let _ = if is_second {
                    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(tls), service).await
                } else {
                    http1::Builder::new().serve_connection(TokioIo::new(tls), service).await
                };
            }
        })
        .await
    }
}

pub(crate) fn believing(authority: &Authority) -> Egress {
    let extra_roots = vec![authority.root.clone()];
    Egress::new(Options { allowlist: loopback(), extra_roots, ..Options::default() }).unwrap()
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_believed_in_both_versions() {
    let authority = Authority::new();
    let egress = believing(&authority);
    for (protocols, version) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Version::HTTP_2),
        (&[b"http/1.1".as_slice()][..], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let receiver = authority.receiver("localhost", protocols).await;
        let url = format!("https://localhost:{}/hook", receiver.address.port());
        for _ in 0..2 {
            let response = egress.send(post(&url), LONG, 100).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, version));
            assert_eq!(response.body().as_ref(), format!("{version:?}").as_bytes());
        }
        assert_eq!(receiver.connections(), 1);
        // A trailing dot is the resolver's business, not the certificate's.
        let dotted = format!("https://localhost.:{}/hook", receiver.address.port());
        assert_eq!(egress.send(post(&dotted), LONG, 0).await.unwrap().status(), 200);
    }
    let by_address = authority.receiver("127.0.0.1", &[]).await;
    let url = format!("https://{}/", by_address.address);
    assert_eq!(egress.send(post(&url), LONG, 0).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_certificate_for_another_name_or_self_signed_is_refused() {
    let authority = Authority::new();
    let receiver = authority.receiver("other.example", &[]).await;
    let url = format!("https://localhost:{}/secret", receiver.address.port());
    let error = believing(&authority).send(post(&url), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Tls(TlsError::WrongHost));
    assert_eq!(error.to_string(), "no encrypted connection: the certificate is not valid for this host");

    let receiver = authority.receiver("localhost", &[]).await;
    let url = format!("https://localhost:{}/secret", receiver.address.port());
    let error = believing(&Authority::new()).send(post(&url), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Tls(TlsError::Untrusted));

    let mut expired = CertificateParams::new(["localhost".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let receiver = authority.receiver_with(&expired, &[]).await;
    let url = format!("https://localhost:{}/secret", receiver.address.port());
    let error = believing(&authority).send(post(&url), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Tls(TlsError::Expired));
}

#[tokio::test]
async fn a_certificate_that_signs_itself_is_believed_once_it_is_named() {
    let acceptor = |params: &CertificateParams| {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        (TlsAcceptor::from(Arc::new(config)), certificate.der().clone())
    };
    // With and without what `openssl req -x509` adds: that it is an authority, too.
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let called = async |params: &CertificateParams, host: &str, believes: bool| {
            let (acceptor, root) = acceptor(params);
            let receiver = Receiver::start(move |socket| {
                let acceptor = acceptor.clone();
                async move {
                    let Ok(tls) = acceptor.accept(socket).await else { return };
                    let service = service_fn(async |_: http::Request<Incoming>| {
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                    });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(tls), service).await;
                }
            })
            .await;
            let extra_roots = vec![if believes { root } else { Authority::new().root }];
            let egress = Egress::new(Options { allowlist: loopback(), extra_roots, ..Options::default() }).unwrap();
            let url = format!("https://{host}:{}/", receiver.address.port());
            egress.send(post(&url), LONG, 0).await.map(|response| response.status().as_u16())
        };
        assert_eq!(called(&params, "localhost", true).await, Ok(200));
        assert_eq!(called(&params, "localhost", false).await, Err(SendError::Tls(TlsError::SelfSigned)));
        assert_eq!(called(&params, "127.0.0.1", true).await, Err(SendError::Tls(TlsError::WrongHost)));
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        assert_eq!(called(&params, "localhost", true).await, Err(SendError::Tls(TlsError::Expired)));
        params.not_before = rcgen::date_time_ymd(2100, 1, 1);
        params.not_after = rcgen::date_time_ymd(2101, 1, 1);
        assert_eq!(called(&params, "localhost", true).await, Err(SendError::Tls(TlsError::NotYetValid)));
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_speak_tls_or_never_ends_the_handshake() {
    let (plain, _) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let extra_roots = vec![Authority::new().root];
    let options = Options { allowlist: loopback(), extra_roots, connect_timeout: SHORT, ..Options::default() };
    let egress = Egress::new(options).unwrap();
    let silent = Receiver::start(|mut socket| async move {
        read_request(&mut socket).await;
    })
    .await;
    let error = egress.send(post(&format!("https://{}/", silent.address)), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Tls });
    // A TLS hello has no end of a head, so a plain server waits for more; the bound ends it.
    let error = egress.send(post(&format!("https://{}/", plain.address)), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Tls });
    let rude = Receiver::start(|mut socket| async move {
        tokio::io::AsyncWriteExt::write_all(&mut socket, b"220 mail.internal ready\r\n").await.unwrap();
        read_request(&mut socket).await;
    })
    .await;
    let error = egress.send(post(&format!("https://{}/", rude.address)), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Tls(TlsError::Handshake));
}

#[test]
fn a_root_that_is_none_is_told_at_once() {
    let extra_roots = vec![Authority::new().root, CertificateDer::from(b"nonsense".to_vec())];
    let error = Egress::new(Options { extra_roots, ..Options::default() }).unwrap_err();
    assert!(matches!(error, SetupError::Root { number: 2, .. }), "{error}");
}
