//! Certificate verification as rustls does it, with two additions for self-signed certificates: one among the trusted
//! roots is accepted although it is also an authority, as the usual tools make them; and one that is not trusted has an
//! error of its own, because the operator can do something about it. With [`crate::Options::unverified`] any
//! certificate is accepted; signatures are still checked, so that a connection stays with the server it was opened to.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use webpki::EndEntityCert;

/// Verifies the certificates of servers.
#[derive(Debug)]
pub(crate) struct CertificateVerifier {
    /// `None` accepts every certificate.
    roots: Option<TrustedRoots>,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct TrustedRoots {
    verifier: Arc<WebPkiServerVerifier>,
    /// The roots once more, as they were read.
    certificates: Vec<CertificateDer<'static>>,
}

/// Why a self-signed certificate is not trusted.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is signed by itself")]
pub(crate) struct SelfSigned;

impl CertificateVerifier {
    /// Accepts certificates that lead to one of the roots; `certificates` are the same roots as they were read.
    pub(crate) fn new(
        roots: RootCertStore,
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        let verifier = verifier.map_err(|error| error.to_string())?;
        Ok(Self { roots: Some(TrustedRoots { verifier, certificates }), ..Self::accept_any(provider) })
    }

    /// Accepts every certificate.
    pub(crate) fn accept_any(provider: &CryptoProvider) -> Self {
        Self { roots: None, algorithms: provider.signature_verification_algorithms }
    }

    /// Whether a certificate names itself as its issuer and would be accepted if it were a root. The signature of an
    /// authority is not checked.
    fn is_self_signed(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
        let names_itself =
            EndEntityCert::try_from(certificate).is_ok_and(|certificate| certificate.issuer() == certificate.subject());
        let mut own = RootCertStore::empty();
        if !names_itself || own.add(certificate.clone().into_owned()).is_err() {
            return false;
        }
        let algorithms = self.algorithms.all;
        let checked = ParsedCertificate::try_from(certificate)
            .and_then(|parsed| verify_server_cert_signed_by_trust_anchor(&parsed, &own, &[], now, algorithms));
        checked.as_ref().map_or_else(is_authority, |()| true)
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(TrustedRoots { verifier, certificates }) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        let error = match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let is_authority = is_authority(&error);
        if is_authority && certificates.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
            // The validity period was checked before the authority was found.
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        // A root of the same name with another key fails by its signature.
        let unknown = [CertificateError::UnknownIssuer, CertificateError::BadSignature];
        let is_unknown = matches!(&error, Error::InvalidCertificate(why) if unknown.contains(why));
        match (is_authority || is_unknown) && self.is_self_signed(end_entity, now) {
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
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether a certificate is refused because it could sign others.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else { return false };
    matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
