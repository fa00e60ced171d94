//! How callers authenticate: the security schemes of a card and what it requires of them.

use serde::{Deserialize, Serialize, Serializer};

use super::read_security::{FlowsWire, scopes};
use crate::Json;
use crate::lenient::{flag, non_empty};
use crate::write_json::OrderedMap;

/// One way to authenticate.
#[derive(Clone, Debug, PartialEq)]
pub enum SecurityScheme {
    /// A key in a header, query or cookie.
    ApiKey {
        /// `header`, `query` or `cookie`.
        location: String,
        /// The name of the header, parameter or cookie.
        name: String,
        /// For people.
        description: Option<String>,
    },
    /// An HTTP authentication scheme.
    Http {
        /// `Bearer`, `Basic` and the like.
        scheme: String,
        /// What a bearer token looks like.
        bearer_format: Option<String>,
        /// For people.
        description: Option<String>,
    },
    /// OAuth 2.
    OAuth2 {
        /// How to get a token.
        flows: Box<OAuthFlows>,
        /// Where the authorization server describes itself.
        oauth2_metadata_url: Option<String>,
        /// For people.
        description: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// The discovery document.
        open_id_connect_url: String,
        /// For people.
        description: Option<String>,
    },
    /// A client certificate.
    MutualTls {
        /// For people.
        description: Option<String>,
    },
    /// A scheme of a later version, kept as it came.
    Unknown(Json),
}

/// The ways to get an OAuth token. v0.3 cards may offer several, v1.0 cards one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "FlowsWire")]
pub struct OAuthFlows {
    /// Through the user's browser.
    pub authorization_code: Option<OAuthFlow>,
    /// Between machines.
    pub client_credentials: Option<OAuthFlow>,
    /// On a second device; v1.0 only.
    pub device_code: Option<OAuthFlow>,
    /// Deprecated.
    pub implicit: Option<OAuthFlow>,
    /// Deprecated.
    pub password: Option<OAuthFlow>,
}

/// One way to get an OAuth token; which addresses are set depends on the flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuthFlow {
    /// Where the user agrees.
    #[serde(alias = "authorization_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// Where a device asks for a code.
    #[serde(alias = "device_authorization_url", deserialize_with = "non_empty")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_authorization_url: Option<String>,
    /// Where the token is issued.
    #[serde(alias = "token_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// Where it is renewed.
    #[serde(alias = "refresh_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    /// The scopes and what they allow.
    #[serde(deserialize_with = "scopes", serialize_with = "as_map")]
    pub scopes: Vec<(String, String)>,
    /// Whether PKCE must be used; v1.0 only.
    #[serde(alias = "pkce_required", deserialize_with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub pkce_required: bool,
}

/// Schemes that must all be met, each with its scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityRequirement(pub Vec<(String, Vec<String>)>);

impl OAuthFlows {
    /// The one flow a v1.0 card can name: the safest that is there.
    pub fn preferred(&self) -> Option<(&'static str, &OAuthFlow)> {
        self.by_name().next()
    }

    /// The flows that are offered, the safest first.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (&'static str, &OAuthFlow)> {
        let flows = [
            ("authorizationCode", &self.authorization_code),
            ("clientCredentials", &self.client_credentials),
            ("deviceCode", &self.device_code),
            ("implicit", &self.implicit),
            ("password", &self.password),
        ];
        flows.into_iter().filter_map(|(name, flow)| Some((name, flow.as_ref()?)))
    }
}

fn as_map<S: Serializer>(scopes: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    OrderedMap(scopes).serialize(serializer)
}
