//! TLS of outgoing connections: trusts the system's certificate authorities (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
//! heeded) and the operator's own, and presents the client certificate to servers that ask for one.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, OtherError, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificate_verifier::{CertificateVerifier, SelfSigned};
use crate::client_certificate::ClientCertificate;
use crate::error::{SetupError, TlsError};
use crate::socket::Socket;
use crate::target::Target;

/// HTTP/2 where the server has it.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Does the TLS handshakes.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    has_roots: bool,
}

impl Tls {
    pub(crate) fn new(
        extra_roots: &[CertificateDer<'static>],
        identity: Option<&ClientCertificate>,
        unverified: bool,
    ) -> Result<Self, SetupError> {
        let mut roots = RootCertStore::empty();
        // A root that cannot be read is one fewer to trust, which fails safe: a system's store may well hold one that
        // this library is too strict for.
        let mut trusted = rustls_native_certs::load_native_certs().certs;
        roots.add_parsable_certificates(trusted.iter().cloned());
        for (index, root) in extra_roots.iter().enumerate() {
            roots.add(root.clone()).map_err(|error| SetupError::Root { number: index + 1, why: error.to_string() })?;
        }
        trusted.extend_from_slice(extra_roots);
        let has_roots = unverified || !roots.is_empty();
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| SetupError::Tls(error.to_string()))?;
        // Without roots nothing can be verified: `handshake` then fails before it begins.
        let verifier = match unverified || !has_roots {
            true => CertificateVerifier::accept_any(&provider),
            false => CertificateVerifier::new(roots, trusted, &provider).map_err(SetupError::Tls)?,
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match identity {
            Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), has_roots })
    }

    pub(crate) async fn handshake(&self, target: &Target, socket: Socket) -> Result<TlsStream<Socket>, TlsError> {
        if !self.has_roots {
            return Err(TlsError::NoRoots);
        }
        let name = match target.address() {
            Some(address) => ServerName::from(address),
            None => ServerName::try_from(target.host().to_owned()).map_err(|_| TlsError::WrongHost)?,
        };
        self.connector.connect(name, socket).await.map_err(|error| fault(&error))
    }
}

/// Whether the server's alert is about a certificate: it can only mean ours, or that we sent none. In TLS 1.3 it comes
/// after the handshake, in place of a response.
pub(crate) fn is_certificate_rejection(error: &io::Error) -> bool {
    let Some(rustls::Error::AlertReceived(alert)) = inner(error) else { return false };
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            // An authority of the same name with another key finds fault with the signature.
            | AlertDescription::DecryptError
    )
}

fn inner(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

fn fault(error: &io::Error) -> TlsError {
    if is_certificate_rejection(error) {
        return TlsError::NotAccepted;
    }
    let Some(rustls::Error::InvalidCertificate(certificate)) = inner(error) else {
        return TlsError::Handshake;
    };
    match certificate {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsError::WrongHost,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsError::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsError::NotYetValid,
        CertificateError::Other(OtherError(other)) if other.is::<SelfSigned>() => TlsError::SelfSigned,
        // A root of the same name with another key fails by its signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsError::Untrusted,
        _ => TlsError::BadCertificate,
    }
}
