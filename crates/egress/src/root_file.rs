//! Files of root certificates in PEM that users name, and what is wrong with one that cannot be used.

use std::env;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

/// Why the certificates of a file cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificates in {} cannot be used: {why}", file.display())]
pub struct RootFileError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// All certificates of a file; there is at least one.
pub fn read_roots(file: &Path) -> Result<Vec<CertificateDer<'static>>, RootFileError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => Err(unusable(file, "there is no certificate in it")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(unusable(file, &reason(&error))),
    }
}

/// Looks at the file that `SSL_CERT_FILE` names in the place of the system's certificates, if it names one: where none of
/// its certificates can be used, it is as if it had none. One that is usable is enough, because a system's store may well
/// hold others that this library is too strict for.
pub fn check_ssl_cert_file() -> Result<(), RootFileError> {
    let Some(file) = env::var_os("SSL_CERT_FILE").map(PathBuf::from) else { return Ok(()) };
    let read = CertificateDer::pem_file_iter(&file).map_err(|error| unusable(&file, &reason(&error)))?;
    let mut roots = RootCertStore::empty();
    let mut why = "there is no certificate in it".to_owned();
    for certificate in read {
        match certificate.map(|certificate| roots.add(certificate)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => why = "no certificate in it is valid".to_owned(),
            Err(error) => why = reason(&error),
        }
    }
    Err(unusable(&file, &why))
}

fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        _ => "it is not well-formed PEM".to_owned(),
    }
}

fn unusable(file: &Path, why: &str) -> RootFileError {
    RootFileError { file: file.to_owned(), why: why.to_owned() }
}
