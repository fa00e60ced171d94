//! Checks a server's certificate as rustls does, and knows two things more about those that sign themselves: one that the
//! operator trusts by name is taken although it is also an authority, as the usual tools make them; and one that is not
//! trusted is told apart, because there is something to be done about it.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use webpki::EndEntityCert;

/// Checks certificates.
#[derive(Debug)]
pub(crate) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    /// The roots once more, as they were read.
    trusted: Vec<CertificateDer<'static>>,
}

/// Why a self-signed certificate is not trusted.
#[derive(Debug)]
pub(crate) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the certificate is signed by itself")
    }
}

impl std::error::Error for SelfSigned {}

impl Verifier {
    pub(crate) fn new(
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { inner: inner.map_err(|error| error.to_string())?, trusted })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let error = match checked {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let is_authority = is_authority(&error);
        if is_authority && self.trusted.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
            // The times were checked before that.
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        // A root of the same name with another key fails by its signature.
        let unknown = [CertificateError::UnknownIssuer, CertificateError::BadSignature];
        let is_unknown = matches!(&error, Error::InvalidCertificate(why) if unknown.contains(why));
        match (is_authority || is_unknown) && is_self_signed(end_entity, now) {
            true => Err(CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()),
            false => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether a certificate is refused because it could sign others.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else { return false };
    matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Whether a certificate names itself as its issuer and would be taken if it were a root. Of an authority the signature is
/// not checked_at at.
fn is_self_signed(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let names_itself =
        EndEntityCert::try_from(certificate).is_ok_and(|certificate| certificate.issuer() == certificate.subject());
    let mut own = RootCertStore::empty();
    if !names_itself || own.add(certificate.clone().into_owned()).is_err() {
        return false;
    }
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    let checked = ParsedCertificate::try_from(certificate)
        .and_then(|parsed| verify_server_cert_signed_by_trust_anchor(&parsed, &own, &[], now, algorithms));
    checked.as_ref().map_or_else(is_authority, |()| true)
}
