//! The DNS resolver: names to addresses. With the feature `nameservers` it asks nameservers itself, without it the
//! operating system.

#[cfg(feature = "nameservers")]
mod nameservers;
#[cfg(any(test, not(feature = "nameservers")))]
mod system;

use std::sync::Arc;

use thiserror::Error;

#[cfg(feature = "nameservers")]
pub(crate) use nameservers::Resolver;
#[cfg(not(feature = "nameservers"))]
pub(crate) use system::Resolver;

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DnsError {
    /// There is no such name.
    #[error("there is no such name")]
    NoSuchName,
    /// The name exists without an address.
    #[error("the name has no address")]
    NoAddress,
    /// No nameserver answered in time.
    #[error("no nameserver answered in time")]
    TimedOut,
    /// The nameservers refused, failed or could not be reached.
    #[error("the nameservers gave no usable answer")]
    Failed,
    /// There are no nameservers to ask.
    #[error("the nameserver configuration cannot be used: {0}")]
    Unconfigured(Arc<str>),
}
