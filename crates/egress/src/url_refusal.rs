//! Why the SSRF guard refuses a URL, in a text that may go back to the caller.
//!
//! The text is redacted: neither what a name resolved to nor whether it resolved at all, because with either a caller
//! could map the internal network. An address that the caller wrote itself is no secret, so its class is named.

use std::fmt;

use thiserror::Error;

use crate::address::AddressClass;
use crate::resolver::DnsError;
use crate::target::MAXIMUM_LENGTH;

/// The text for every failure of a name.
const NOWHERE_PUBLIC: &str = "the host cannot be resolved to a public address";

/// Why a URL is refused. Its text may go back to the caller; [`UrlRefusal::detail`] may not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlRefusal {
    /// Longer than [`MAXIMUM_LENGTH`], as sent or after normalisation.
    #[error("the url is {length} bytes long, at most {MAXIMUM_LENGTH} are allowed")]
    TooLong {
        /// The length in bytes.
        length: usize,
    },
    /// Parsers disagree about these characters, which an attacker could use.
    #[error("the url contains a space, a backslash or a control character")]
    Character,
    /// Neither http nor https.
    #[error("the url must begin with http:// or https://")]
    Scheme,
    /// A user name or password before the host.
    #[error("the url must not contain a user name or password")]
    UserInfo,
    /// An empty host.
    #[error("the url has no host")]
    NoHost,
    /// The host is neither a name nor an address.
    #[error("the host is not a valid name or address")]
    Host,
    /// Port 0, or not a port.
    #[error("the port must be between 1 and 65535")]
    Port,
    /// Not a URL for some other reason.
    #[error("the url is not well formed")]
    Malformed,
    /// `localhost` or a name under it.
    #[error("the host is this machine itself")]
    Localhost,
    /// An address in the URL itself that is not public.
    #[error("the host is {0}")]
    Address(AddressClass),
    /// A name of which at least one address is not public.
    #[error("{NOWHERE_PUBLIC}")]
    NotPublic,
    /// A failed lookup: an address that cannot be checked is not called.
    #[error("{NOWHERE_PUBLIC}")]
    Unresolved(DnsError),
}

impl UrlRefusal {
    /// Whether an allowlist entry would permit it. That goes for a failed lookup too, because a host that is allowed by
    /// name is not looked up.
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Localhost | Self::Address(_) | Self::NotPublic | Self::Unresolved(_))
    }

    /// The text that is not redacted, for operators only.
    pub fn detail(&self) -> impl fmt::Display {
        match self {
            Self::NotPublic => "the host resolves to an address that is not public".to_owned(),
            Self::Unresolved(error) => format!("the host cannot be resolved: {error}"),
            other => other.to_string(),
        }
    }
}
