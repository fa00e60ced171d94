//! Calls to addresses that somebody else chose: webhooks, cards, remote agents.
//!
//! [`Egress`] looks at a URL's text, resolves its name once, judges every address and connects to exactly what it
//! judged, so a name that changes its mind between the look and the call gains nothing. Nothing else is followed:
//! no redirect, no proxy, no cookie. What an operator wants reached inside the network is named in an [`Allowlist`];
//! where the URL is the operator's own, [`Options::anywhere`] leaves the judging out.

pub mod address;
mod allowlist;
mod certificate_verifier;
mod client_certificate;
mod connector;
mod egress;
mod error;
mod options;
mod policy;
mod receive_budget;
mod resolver;
mod response_body;
mod socket;
mod stream;
mod target;
mod tls;
mod unverified;
mod url_refusal;

pub use rustls::pki_types::CertificateDer;

pub use address::{Reason, refused};
pub use allowlist::{Allowlist, BadEntry};
pub use client_certificate::Identity;
pub use egress::Egress;
pub use error::{BodyFault, Phase, SendError, SetupError, TlsFault};
pub use options::Options;
pub use resolver::DnsError;
pub use response_body::{AnswerBody, BodyEnd};
pub use target::{MAXIMUM_LENGTH, Target};
pub use url_refusal::Refusal;
