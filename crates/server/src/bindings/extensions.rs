//! Extensions: which the caller declares, which the agent requires, and which are active.

use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_a2a::extension::{IDEMPOTENCY, RESUMPTION, is_known};
use switchboard_a2a::{Error, ErrorKind, Version};
use switchboard_engine::Manifest;

const PLAIN: &str = "a2a-extensions";
const PREFIXED: &str = "x-a2a-extensions";

/// What the caller declares, under either name of the header.
#[derive(Debug, Default)]
pub(super) struct DeclaredExtensions(Vec<String>);

impl DeclaredExtensions {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut uris: Vec<String> = Vec::new();
        let values = headers.get_all(PLAIN).iter().chain(headers.get_all(PREFIXED));
        for value in values.filter_map(|value| value.to_str().ok()) {
            for uri in value.split(',').map(str::trim).filter(|uri| !uri.is_empty()) {
                if !uris.iter().any(|known| known == uri) {
                    uris.push(uri.to_owned());
                }
            }
        }
        Self(uris)
    }

    /// Refuses a caller that does not declare a required extension.
    pub(super) fn check(&self, manifest: &Manifest) -> Result<(), Error> {
        let required = manifest.extensions.iter().filter(|extension| extension.required);
        for extension in required {
            if !self.0.contains(&extension.uri) {
                let message = format!("Extension support required: {}; declare it in A2A-Extensions", extension.uri);
                return Err(
                    Error::with_message(ErrorKind::ExtensionRequired, message).detail("extension", &extension.uri)
                );
            }
        }
        Ok(())
    }

    /// Those that the agent offers and does not hear of otherwise: neither known here nor required of every caller.
    pub(super) fn of_agent(&self, manifest: &Manifest) -> Vec<String> {
        let is_offered = |uri: &&String| {
            !is_known(uri) && manifest.extensions.iter().any(|offered| offered.uri == **uri && !offered.required)
        };
        self.0.iter().filter(is_offered).cloned().collect()
    }

    /// The header that says which of the declared extensions are active, under the name the version knows.
    pub(super) fn activated(&self, manifest: Option<&Manifest>, version: Version) -> Option<(HeaderName, HeaderValue)> {
        let manifest = manifest.filter(|_| !self.0.is_empty())?;
        let is_active = |uri: &&String| {
            manifest.extensions.iter().any(|extension| extension.uri == **uri)
                || manifest.streaming && uri.as_str() == RESUMPTION
                || uri.as_str() == IDEMPOTENCY
        };
        let active: Vec<&str> = self.0.iter().filter(is_active).map(String::as_str).collect();
        let name = match version {
            Version::V1 => PLAIN,
            Version::V03 => PREFIXED,
        };
        let value = HeaderValue::from_str(&active.join(",")).ok().filter(|value| !value.is_empty())?;
        Some((HeaderName::from_static(name), value))
    }
}
