//! Version negotiation: the dialect of a request, decided once, from the method or path and the `A2A-Version` header.
//!
//! The default version, for a request without that header: the version of the JSON-RPC method's name, and for REST 0.3
//! below `/v1` and 1.0 elsewhere. With `strict_version` a request of version 1.0 has no default.

use http::HeaderMap;
use switchboard_a2a::{
    Dialect, Error, ErrorKind, Operation, SUPPORTED_VERSIONS, Version, VersionNumber, parse_version,
};

use super::percent;

/// The header, and the query parameter that counts as one.
pub(super) const VERSION: &str = "a2a-version";

/// The version that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestedVersion {
    /// None, so that the default version counts.
    Unspecified,
    Number(VersionNumber),
    /// A text that is no version.
    Invalid(String),
    /// Several headers that name different versions; a proxy in between may have gone by another one of them.
    Ambiguous,
}

impl RequestedVersion {
    /// Reads the headers, else the query; empty is the same as absent.
    pub(super) fn read(headers: &HeaderMap, query: Option<&str>) -> Self {
        let values = headers.get_all(VERSION).iter().map(|value| value.as_bytes().trim_ascii());
        let mut named = values.filter(|value| !value.is_empty()).map(|value| Self::of(&String::from_utf8_lossy(value)));
        if let Some(first) = named.next() {
            return if named.all(|other| other == first) { first } else { Self::Ambiguous };
        }
        let found = percent::find(query, VERSION);
        found.as_deref().map(str::trim).filter(|text| !text.is_empty()).map_or(Self::Unspecified, Self::of)
    }

    fn of(text: &str) -> Self {
        parse_version(text).map_or_else(|| Self::Invalid(text.chars().take(40).collect()), Self::Number)
    }

    /// The version, if it is supported here.
    pub(super) fn supported(&self) -> Option<Version> {
        match self {
            Self::Number(number) => number.spoken(),
            _ => None,
        }
    }

    /// For error messages.
    fn describe(&self) -> String {
        match self {
            Self::Unspecified => "the request names no A2A-Version".to_owned(),
            Self::Number(VersionNumber { major, minor }) => format!("{major}.{minor}"),
            Self::Invalid(text) => format!("{text:?}"),
            Self::Ambiguous => "several versions".to_owned(),
        }
    }

    /// The error of headers that contradict each other.
    pub(super) fn ambiguity(&self) -> Option<Error> {
        let problem = "is there more than once, with different versions: send it once";
        (*self == Self::Ambiguous).then(|| Error::invalid_field("A2A-Version", problem))
    }

    fn is_first_major(&self) -> bool {
        matches!(self, Self::Number(number) if number.major == 1)
    }
}

/// Why a version is refused, and the dialect to respond in.
pub(super) type UnsupportedVersion = (Dialect, Error);

/// The dialect of a JSON-RPC method. Its name is of one version, which is the default; a requested one must agree.
pub(super) fn of_method(
    method: Version,
    operation: Operation,
    requested: &RequestedVersion,
    strict: bool,
) -> Result<Dialect, UnsupportedVersion> {
    let dialect = method.rpc_dialect();
    if let Some(error) = requested.ambiguity() {
        return Err((dialect, error));
    }
    let has_default = method == Version::V03 || !strict;
    if requested.supported() == Some(method) || *requested == RequestedVersion::Unspecified && has_default {
        return Ok(dialect);
    }
    let (name, said) = (operation.method(method), requested.describe());
    match (method, requested.supported()) {
        // This method belongs to no version, so it is answered in the one that is requested, as the card itself is.
        (Version::V1, Some(_)) if operation == Operation::GetCard => Ok(Dialect::V03Rpc),
        (Version::V1, Some(other)) => {
            let other = operation.method(other);
            let said =
                format!("{name} belongs to version 1.0, and the request says 0.3; send A2A-Version: 1.0, or {other}");
            Err((dialect, not_supported(&said)))
        }
        (Version::V03, _) if requested.is_first_major() => {
            let other = operation.method(Version::V1);
            let message = format!(
                "Method not found: {name} belongs to version 0.3, and the request says {said}; send {other}, or \
                 A2A-Version: 0.3"
            );
            Err((dialect, Error::with_message(ErrorKind::MethodNotFound, message)))
        }
        (version, _) => {
            Err((dialect, not_supported(&format!("{said}; send A2A-Version: {} with {name}", version.as_str()))))
        }
    }
}

/// The dialect of a REST path, with or without the `/v1` of version 0.3.
pub(super) fn of_path(
    prefixed: bool,
    requested: &RequestedVersion,
    strict: bool,
) -> Result<Dialect, UnsupportedVersion> {
    if let Some(error) = requested.ambiguity() {
        return Err((if prefixed { Dialect::V03Rest } else { Dialect::V1 }, error));
    }
    let refused = |dialect| {
        let said = format!("{}; send A2A-Version: 1.0 or 0.3", requested.describe());
        Err((dialect, not_supported(&said)))
    };
    match (requested, requested.supported()) {
        (_, Some(Version::V1)) => Ok(Dialect::V1),
        (_, None) if requested.is_first_major() => refused(Dialect::V1),
        (_, Some(Version::V03)) => Ok(Dialect::V03Rest),
        (RequestedVersion::Unspecified, None) if prefixed => Ok(Dialect::V03Rest),
        (_, None) if prefixed => refused(Dialect::V03Rest),
        (RequestedVersion::Unspecified, None) if !strict => Ok(Dialect::V1),
        (_, None) => refused(Dialect::V1),
    }
}

/// The dialect of the response to a JSON-RPC body without a known method.
pub(super) fn of_unknown_method(method: &str, requested: &RequestedVersion) -> Dialect {
    match requested.supported() {
        Some(version) => version.rpc_dialect(),
        None if method.contains('/') => Dialect::V03Rpc,
        None => Dialect::V1,
    }
}

fn not_supported(said: &str) -> Error {
    let message = format!("Version not supported: {said}");
    Error::with_message(ErrorKind::VersionNotSupported, message).detail("supportedVersions", SUPPORTED_VERSIONS)
}
