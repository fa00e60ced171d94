//! Reads the two files of a certificate and builds the TLS configuration from them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use switchboard_engine::sha256;

use super::{TlsError, TlsPart};

/// The protocols offered by ALPN.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[derive(Debug)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The content of the files, to be compared with what is found there later. A digest, because the key itself should be in
/// memory no more often than it must.
#[derive(Debug, PartialEq)]
pub(super) struct ContentDigest([u8; 32]);

type Content = Result<Vec<u8>, TlsError>;

/// What was found in the two files.
pub(super) type Contents = (Content, Content);

impl CertificateFiles {
    pub(super) fn contents(&self) -> Contents {
        (content(TlsPart::Certificate, &self.certificate), content(TlsPart::Key, &self.key))
    }

    /// Builds what a handshake needs.
    pub(super) fn build(&self, (certificate, key): Contents) -> Result<ServerConfig, Vec<TlsError>> {
        let chain = certificate.and_then(|pem| self.chain(&pem));
        let key = key.and_then(|pem| self.key(&pem));
        let (chain, key) = match (chain, key) {
            (Ok(chain), Ok(key)) => (chain, key),
            (chain, key) => return Err([chain.err(), key.err()].into_iter().flatten().collect()),
        };
        self.config(chain, key).map_err(|error| vec![error])
    }

    fn chain(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
        let chain = chain.map_err(|error| not_pem(TlsPart::Certificate, &self.certificate, &error))?;
        if chain.is_empty() {
            return Err(TlsError {
                part: TlsPart::Certificate,
                problem: format!("{} holds no certificate", self.certificate.display()),
                right: "name a PEM file with a BEGIN CERTIFICATE line: the server's own certificate, then those that signed it",
            });
        }
        Ok(chain)
    }

    fn key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
        let file = self.key.display();
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            // It is a section of its own kind, or in older files one whose first lines say so and are not base64.
            _ if holds(pem, b"ENCRYPTED") => key_error(
                format!("the private key in {file} needs a passphrase"),
                "store the key without a passphrase, readable for this user only",
            ),
            pem::Error::NoItemsFound => {
                key_error(format!("{file} holds no private key"), "name a PEM file with a BEGIN PRIVATE KEY line")
            }
            error => not_pem(TlsPart::Key, &self.key, &error),
        })
    }

    fn config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, TlsError> {
        let (certificate_file, key_file) = (self.certificate.display(), self.key.display());
        let bad_key = |source| {
            let right = "name an RSA key of 2048 bits or more, an ECDSA key (P-256, P-384) or an Ed25519 key";
            key_error(format!("the private key in {key_file} cannot be used ({source})"), right)
        };
        let provider = Arc::new(ring::default_provider());
        let signing = provider.key_provider.load_private_key(key).map_err(bad_key)?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => key_error(
                format!("the private key in {key_file} does not belong to the first certificate in {certificate_file}"),
                "name the key that the certificate was made for; the server's own certificate comes first in its file",
            ),
            rustls::Error::InconsistentKeys(_) => bad_key(error),
            error => TlsError {
                part: TlsPart::Certificate,
                problem: format!("the certificate in {certificate_file} cannot be used ({error})"),
                right: "name the certificate that was made for this server, in X.509 version 3",
            },
        })?;
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(bad_key)?;
        let resolver = Arc::new(SingleCertAndKey::from(certified));
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(config)
    }
}

impl ContentDigest {
    pub(super) fn new((certificate, key): &Contents) -> Self {
        let [certificate, key] = [certificate, key].map(|content| match content {
            Ok(bytes) => sha256([bytes.as_slice()]),
            Err(error) => sha256([error.to_string().as_bytes()]),
        });
        Self(sha256([certificate.as_slice(), &key]))
    }
}

fn content(part: TlsPart, file: &Path) -> Content {
    std::fs::read(file).map_err(|source| {
        let right = match source.kind() {
            io::ErrorKind::NotFound => "name a file that exists; a relative path starts at the workspace folder",
            _ => "name a PEM file that the user of this process may read",
        };
        TlsError { part, problem: format!("{} cannot be read ({source})", file.display()), right }
    })
}

fn key_error(problem: String, right: &'static str) -> TlsError {
    TlsError { part: TlsPart::Key, problem, right }
}

fn holds(pem: &[u8], word: &[u8]) -> bool {
    pem.windows(word.len()).any(|window| window == word)
}

/// The library shows bytes here; a person wants words.
fn not_pem(part: TlsPart, file: &Path, error: &pem::Error) -> TlsError {
    let problem = match error {
        pem::Error::MissingSectionEnd { .. } => "a BEGIN line has no END line",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is cut short",
        pem::Error::Base64Decode(_) => "what stands between BEGIN and END is not base64",
        pem::Error::SectionTooLarge => "a section is far too large",
        _ => "it cannot be made out",
    };
    let right = "copy the file again, from its first BEGIN line to its last END line";
    TlsError { part, problem: format!("{} is not PEM that can be read ({problem})", file.display()), right }
}
