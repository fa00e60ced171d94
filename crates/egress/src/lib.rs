//! The SSRF guard (server-side request forgery): HTTP calls to URLs that a caller or a peer chose, such as webhooks,
//! cards and remote agents.
//!
//! [`Egress`] checks a URL's text, resolves its name once, checks every address and connects to exactly those, so a
//! name that resolves differently between check and call (DNS rebinding) gains nothing. It follows no redirect and uses
//! no proxy and no cookies. The operator names what may be reached inside the network in an [`Allowlist`]; where the
//! URL is the operator's own, [`Options::anywhere`] leaves the address check out.
//!
//! With the feature `nameservers` names are looked up by asking nameservers, also those of [`Options::nameservers`];
//! without it by the operating system, and where nameservers are configured every lookup fails.

mod address;
mod allowlist;
mod certificate_verifier;
mod client_certificate;
mod connector;
mod egress;
mod error;
mod jitter;
mod options;
mod policy;
mod receive_budget;
mod resolver;
mod response_body;
mod root_file;
mod socket;
mod stream;
mod target;
mod tls;
mod url_refusal;

pub use rustls::pki_types::CertificateDer;

pub use address::{AddressClass, special_purpose};
pub use allowlist::{Allowlist, AllowlistError};
pub use client_certificate::ClientCertificate;
pub use egress::Egress;
pub use error::{BodyError, SendError, SetupError, TimeoutPhase, TlsError};
pub use jitter::jitter;
pub use options::Options;
pub use resolver::DnsError;
pub use response_body::{BodyEnd, ResponseBody};
pub use root_file::{RootFileError, check_ssl_cert_file, read_roots};
pub use target::{MAXIMUM_LENGTH, Target};
pub use url_refusal::UrlRefusal;
