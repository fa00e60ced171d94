//! The three ways A2A is written as JSON, and the version numbers that choose between them.

use std::fmt;

/// How a message is written. v0.3 on JSON-RPC and v0.3 on REST differ in almost every object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// v1.0, the same on JSON-RPC and REST.
    V1,
    /// v0.3 on JSON-RPC: `kind` discriminators and kebab-case enums.
    V03Rpc,
    /// v0.3 on REST: the JSON form of the v0.3 protocol buffers.
    V03Rest,
}

impl Dialect {
    /// Every dialect, in the order of [`Dialect::index`].
    pub const ALL: [Self; 3] = [Self::V1, Self::V03Rpc, Self::V03Rest];

    /// A small number for tables that hold one entry per dialect.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The version it belongs to.
    pub fn version(self) -> Version {
        match self {
            Self::V1 => Version::V1,
            Self::V03Rpc | Self::V03Rest => Version::V03,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V1 => "v1.0",
            Self::V03Rpc => "v0.3 on JSON-RPC",
            Self::V03Rest => "v0.3 on REST",
        })
    }
}

/// A supported protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.0.
    V1,
    /// 0.3.
    V03,
}

impl Version {
    /// As it stands in the `A2A-Version` header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V03 => "0.3",
        }
    }

    /// The dialect of this version on JSON-RPC.
    pub fn rpc_dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::V1,
            Self::V03 => Dialect::V03Rpc,
        }
    }

    /// The dialect of this version on REST.
    pub fn rest_dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::V1,
            Self::V03 => Dialect::V03Rest,
        }
    }
}

/// The supported versions, as an error reports them.
pub const SUPPORTED_VERSIONS: &str = "1.0,0.3";

/// A version that a peer names, supported or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionNumber {
    /// Before the first dot.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl VersionNumber {
    /// The supported version, if it is one.
    pub fn spoken(self) -> Option<Version> {
        match (self.major, self.minor) {
            (1, 0) => Some(Version::V1),
            (0, 3) => Some(Version::V03),
            _ => None,
        }
    }
}

/// Reads `major.minor` or `major.minor.patch`; the patch number never matters.
pub fn parse_version(text: &str) -> Option<VersionNumber> {
    let numbers: Vec<&str> = text.trim().split('.').collect();
    let is_number = |digits: &&str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let ([major, minor] | [major, minor, _]) = numbers.as_slice() else { return None };
    if !numbers.iter().all(is_number) {
        return None;
    }
    Some(VersionNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}
