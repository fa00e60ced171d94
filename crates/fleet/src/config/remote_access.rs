//! Credentials for a remote agent that need more than one key: OAuth client credentials, a client certificate, and the
//! form of other fleets.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_client::is_private;
use switchboard_host::config::section::Section;
use switchboard_host::word_setting;

use crate::config::remote_agent::RemoteUrl;

/// Credentials in the form of other fleets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Auth {
    /// What the credentials are: `apiKey`, `bearer` or `hmac`.
    ///
    /// The same as `apiKeyEnv`, `bearerEnv` or `hmacEnv`.
    pub scheme: Option<AuthScheme>,
    /// Variable of the environment that holds them.
    pub credentials_env: Option<String>,
}

/// What the credentials are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthScheme {
    /// `apiKeyEnv`.
    ApiKey,
    /// `bearerEnv`.
    Bearer,
    /// `hmacEnv`.
    Hmac,
}

word_setting!(AuthScheme: "apiKey" => ApiKey, "bearer" => Bearer or "hmac" => Hmac);

impl Auth {
    pub(super) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("scheme", &mut self.scheme);
        section.read("credentialsEnv", &mut self.credentials_env);
        match (self.scheme, &self.credentials_env) {
            (Some(_), None) => section.refuse("scheme", "it has no credentials", "write credentialsEnv beside it"),
            (None, Some(_)) => {
                section.refuse(
                    "credentialsEnv",
                    "it does not say what they are",
                    "write scheme: apiKey, bearer or hmac",
                );
            }
            _ => {}
        }
    }
}

/// Tokens that are fetched with the client credentials of OAuth 2.0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct OAuth {
    /// Where tokens come from.
    ///
    /// One is fetched with the first call and again before it runs out, or when the agent no longer takes it.
    pub token_url: Option<RemoteUrl>,
    /// Who asks for a token.
    pub client_id: Option<String>,
    /// Variable of the environment that holds the secret that proves it.
    pub client_secret_env: Option<String>,
    /// What the token is to be good for.
    pub scopes: Vec<String>,
}

/// The certificate that is shown to an agent that asks for one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct ClientTls {
    /// Client certificate to show, in PEM, followed by those between it and its authority.
    ///
    /// A relative path starts at the workspace folder.
    pub cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM, without a passphrase.
    pub key: Option<PathBuf>,
}

impl OAuth {
    pub(super) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("tokenUrl", &mut self.token_url);
        section.read("clientId", &mut self.client_id);
        section.read("clientSecretEnv", &mut self.client_secret_env);
        section.read("scopes", &mut self.scopes);
        if self.token_url.as_ref().is_some_and(|url| !is_private(url.as_str())) {
            section.refuse("tokenUrl", "the secret would be sent unencrypted", "write an address with https://");
        }
        if self.parts().is_none() {
            let is_any = self.token_url.is_some() || self.client_id.is_some() || self.client_secret_env.is_some();
            if is_any || !self.scopes.is_empty() {
                section.refuse_all("not enough to fetch a token", "write tokenUrl, clientId and clientSecretEnv");
            }
        }
    }

    /// Where to ask, who asks, and the variable with its secret; none unless tokens are to be fetched.
    pub fn parts(&self) -> Option<(&str, &str, &str)> {
        Some((self.token_url.as_ref()?.as_str(), self.client_id.as_deref()?, self.client_secret_env.as_deref()?))
    }
}

impl ClientTls {
    pub(super) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("cert", &mut self.cert);
        section.read("key", &mut self.key);
        match (&self.cert, &self.key) {
            (Some(_), None) => section.refuse("cert", "it is of no use without its key", "write key beside it"),
            (None, Some(_)) => section.refuse("key", "it is of no use without its certificate", "write cert beside it"),
            _ => {}
        }
    }

    /// The files, if a certificate is to be shown, from the workspace folder on.
    pub fn files(&self, folder: &Path) -> Option<(PathBuf, PathBuf)> {
        Some((folder.join(self.cert.as_deref()?), folder.join(self.key.as_deref()?)))
    }
}
