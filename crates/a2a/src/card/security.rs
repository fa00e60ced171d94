//! How callers authenticate, as a card says it.

use crate::Json;

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
    /// A scheme nobody here knows, kept as it came.
    Unknown(Json),
}

/// The ways to get an OAuth token. v0.3 cards may offer several, v1.0 cards one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthFlow {
    /// Where the user agrees.
    pub authorization_url: Option<String>,
    /// Where a device asks for a code.
    pub device_authorization_url: Option<String>,
    /// Where the token is had.
    pub token_url: Option<String>,
    /// Where it is renewed.
    pub refresh_url: Option<String>,
    /// The scopes and what they allow.
    pub scopes: Vec<(String, String)>,
    /// Whether PKCE must be used; v1.0 only.
    pub pkce_required: bool,
}

/// Schemes that must all be met, each with its scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityRequirement(pub Vec<(String, Vec<String>)>);

impl OAuthFlows {
    /// The one flow a v1.0 card can name: the safest that is there.
    pub fn preferred(&self) -> Option<(&'static str, &OAuthFlow)> {
        let flows = [
            ("authorizationCode", &self.authorization_code),
            ("clientCredentials", &self.client_credentials),
            ("deviceCode", &self.device_code),
            ("implicit", &self.implicit),
            ("password", &self.password),
        ];
        flows.into_iter().find_map(|(name, flow)| flow.as_ref().map(|flow| (name, flow)))
    }
}
