//! An entry of `agents.yaml` with a `url`: an agent that runs elsewhere.
//! Secrets are named, not written down: they come from variables that are read at the time of a call.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::document::Content;
use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::config::section::Section;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::{Scalar, Value};
use switchboard_host::json_schema_of;

use crate::config::named_files::NamedContent;
use crate::config::remote_access::{Auth, AuthScheme, ClientTls, OAuth};
use crate::config::remote_serving::RemoteServing;
use crate::config::rest_files::RemoteVersion03;

/// An agent elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct RemoteAgent {
    /// Name.
    ///
    /// What it is called by on the command line.
    pub name: AgentName,
    /// Where it is: its base address, its card or its endpoint.
    pub url: RemoteUrl,
    /// Variable of the environment that holds its API key.
    ///
    /// The key is sent as `X-API-Key`.
    #[schemars(default)]
    pub api_key_env: Option<String>,
    /// Variable of the environment that holds its bearer token.
    #[schemars(default)]
    pub bearer_env: Option<String>,
    /// Variable of the environment that holds a secret to sign every request with (HMAC-SHA256).
    ///
    /// The signature is `t=<seconds since 1970>,v1=<hexadecimal>` over `<seconds>.<method>.<path and query>.<body>`.
    #[schemars(default)]
    pub hmac_env: Option<String>,
    /// Header of the signature.
    #[schemars(default = "usual_signature_header")]
    pub hmac_header: Option<String>,
    /// The same as one of these, in the form some fleets use.
    #[schemars(default)]
    pub auth: Auth,
    /// Client credentials for tokens that are fetched.
    #[schemars(default)]
    pub oauth: OAuth,
    /// Client certificate for agents that ask for one.
    #[schemars(default)]
    pub tls: ClientTls,
    /// Headers to send with every request.
    #[schemars(default)]
    pub headers: Headers,
    /// Time for one request until its first answer.
    ///
    /// For commands such as `switchboard send` the time for the whole call.
    #[schemars(default)]
    pub timeout: Option<TimeSpan>,
    /// The same in milliseconds.
    #[schemars(default)]
    pub timeout_ms: Option<u32>,
    /// Whether addresses on its card are followed to other hosts.
    #[schemars(default)]
    pub trust_card_url: bool,
    /// Variable of the environment with the token of the agent's Discord bot. It is taken and has no effect.
    #[schemars(default)]
    pub discord_bot_token_env_key: Option<String>,
    /// How it is treated if it speaks version 0.3.
    #[schemars(default)]
    pub v03: RemoteVersion03,
    /// How it is served here.
    #[serde(flatten)]
    pub serving: RemoteServing,
    /// What was in the files that it names. It counts when definitions are compared.
    #[serde(skip)]
    pub named_content: NamedContent,
    /// Where it was configured.
    #[schemars(skip)]
    pub origin: Origin,
}

/// Headers of one connection or one message, which the client sets for each request by itself: another value would break
/// the request, or end where it does not.
const SET_BY_CLIENT: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The header of a signature unless the file names another.
fn usual_signature_header() -> Option<String> {
    Some("X-Signature".to_owned())
}

/// The address of an agent elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RemoteUrl(String);

/// Headers to send. Their values may be secrets and are never printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl RemoteAgent {
    /// Reads one item of the list; nothing when it cannot be an agent, which is then reported.
    pub(super) fn read(section: &mut Section<'_, '_>, name: Option<AgentName>, origin: Origin) -> Option<Self> {
        let mut url = None::<RemoteUrl>;
        let (mut api_key_env, mut bearer_env) = (None::<String>, None::<String>);
        let (mut hmac_env, mut hmac_header) = (None::<String>, usual_signature_header());
        let (mut oauth, mut tls) = (OAuth::default(), ClientTls::default());
        let mut headers = Headers::default();
        let (mut timeout, mut timeout_ms) = (None::<TimeSpan>, None::<u32>);
        let (mut trust_card_url, mut discord_bot_token_env_key) = (false, None::<String>);
        let mut v03 = RemoteVersion03::default();
        section.read("url", &mut url);
        section.read("apiKeyEnv", &mut api_key_env);
        section.read("bearerEnv", &mut bearer_env);
        section.read("hmacEnv", &mut hmac_env);
        section.read("hmacHeader", &mut hmac_header);
        let mut auth = Auth::default();
        section.section("auth", |section| auth.read(section));
        section.section("oauth", |section| oauth.read(section));
        section.section("tls", |section| tls.read(section));
        section.read("headers", &mut headers);
        section.read("timeout", &mut timeout);
        section.read("timeoutMs", &mut timeout_ms);
        section.read("trustCardUrl", &mut trust_card_url);
        section.read("discordBotTokenEnvKey", &mut discord_bot_token_env_key);
        section.section("v03", |section| section.read("restFiles", &mut v03.rest_files));
        let mut serving = RemoteServing::default();
        serving.read(section);
        let ways = ["bearerEnv", "apiKeyEnv", "hmacEnv", "auth", "oauth"];
        let given: Vec<&str> = ways.into_iter().filter(|key| section.is_set(key)).collect();
        if let [first, .., last] = given[..] {
            section.refuse(last, format!("{first} says who we are already"), "keep one of the two");
        }
        if let Some(header) = hmac_header.as_deref().filter(|header| HeaderName::try_from(*header).is_err()) {
            let wrong = format!("\"{header}\" cannot be the name of a header");
            section.refuse("hmacHeader", wrong, "write letters, digits and -, such as X-Signature");
        }
        let named = hmac_header.as_deref().and_then(|header| HeaderName::try_from(header).ok());
        if let Some(Mismatch { wrong, .. }) = named.as_ref().and_then(set_by_client) {
            section.refuse("hmacHeader", wrong, "choose another name, such as X-Signature");
        }
        if timeout.is_some() && timeout_ms.is_some() {
            section.refuse("timeoutMs", "timeout says the same", "remove one of the two");
        }
        if timeout == Some(TimeSpan::ZERO) {
            section.refuse_zero("timeout", TimeSpan::ZERO);
        }
        if timeout_ms == Some(0) {
            section.refuse("timeoutMs", "0 leaves no time at all", "write milliseconds, such as 30000");
        }
        match (auth.scheme, auth.credentials_env.clone()) {
            (Some(AuthScheme::ApiKey), credentials) => api_key_env = credentials,
            (Some(AuthScheme::Bearer), credentials) => bearer_env = credentials,
            (Some(AuthScheme::Hmac), credentials) => hmac_env = credentials,
            (None, _) => {}
        }
        let (name, url) = (name?, url?);
        Some(Self {
            name,
            url,
            api_key_env,
            bearer_env,
            hmac_env,
            hmac_header,
            auth,
            oauth,
            tls,
            headers,
            timeout,
            timeout_ms,
            trust_card_url,
            discord_bot_token_env_key,
            v03,
            serving,
            named_content: NamedContent::default(),
            origin,
        })
    }

    /// The header of signatures.
    pub fn signature_header(&self) -> HeaderName {
        let named = self.hmac_header.as_deref().and_then(|name| HeaderName::try_from(name).ok());
        named.unwrap_or_else(|| HeaderName::from_static("x-signature"))
    }

    /// The time for a request until its first answer, if it is limited; for commands that of a whole call.
    pub fn time_limit(&self) -> Option<Duration> {
        let milliseconds = self.timeout_ms.map(|milliseconds| Duration::from_millis(milliseconds.into()));
        self.timeout.map(TimeSpan::duration).or(milliseconds)
    }
}

impl RemoteUrl {
    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Headers {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> + '_ {
        self.0.iter().cloned()
    }
}

impl Scalar for RemoteUrl {
    const WRITE: &'static str = "an address that begins with https:// or http://";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let wrong = |what: &str| Self::mismatch(text, what);
        let Some((scheme, rest)) = text.split_once("://") else { return Err(wrong("has no scheme")) };
        if !["http", "https"].contains(&scheme) {
            return Err(wrong("cannot be called"));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // The text holds a secret, so it is not repeated.
            return Err(Mismatch::new("it holds a name or a password", "use bearerEnv or apiKeyEnv for secrets"));
        }
        match text.parse::<http::Uri>() {
            Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(Self(text.to_owned())),
            _ => Err(wrong("is no address")),
        }
    }
}

json_schema_of!(RemoteUrl, { "type": "string", "pattern": "^https?://[^/@]+" });

impl Value for Headers {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        let entries = match content {
            Content::Mapping(entries) => entries,
            Content::Empty => return Ok(Self::default()),
            other => return Err(Mismatch::new(other.kind(), "write a mapping of names and values")),
        };
        let mut headers = Vec::new();
        for entry in entries {
            let name = HeaderName::try_from(entry.key.as_str());
            let wrong_name = |_| {
                let right = "write letters, digits and -, such as X-Team";
                Mismatch::new(format!("\"{}\" cannot be the name of a header", entry.key), right)
            };
            if let Some(mismatch) = name.as_ref().ok().and_then(set_by_client) {
                return Err(mismatch);
            }
            let value = match &entry.value.content {
                Content::Text(text) => HeaderValue::from_str(text).ok(),
                _ => None,
            };
            let wrong_value =
                || Mismatch::new(format!("{} is no text on one line", entry.key), "write the header's value");
            let mut value = value.ok_or_else(wrong_value)?;
            value.set_sensitive(true);
            headers.push((name.map_err(wrong_name)?, value));
        }
        Ok(Self(headers))
    }
}

/// Why a header cannot be one of a configuration, if the client sets it.
fn set_by_client(name: &HeaderName) -> Option<Mismatch> {
    if name == "idempotency-key" {
        let wrong = "idempotency-key is another one for each message, which the client sets itself: with the same one for \
                     all messages they would count as one and the same";
        return Some(Mismatch::new(wrong, "remove this header"));
    }
    let is_set = SET_BY_CLIENT.contains(&name.as_str());
    is_set.then(|| Mismatch::new(format!("{name} is set by the client itself, for each request"), "remove this header"))
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, _)| (name.as_str(), "***")))
    }
}

json_schema_of!(Headers, { "type": "object", "additionalProperties": { "type": "string" } });
