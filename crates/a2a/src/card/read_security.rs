//! Reads security schemes and requirements in every form seen, `$case` objects included. Unknown schemes are kept.

use serde::{Deserialize, Deserializer};

use super::security::{OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme};
use crate::lenient::{non_empty, optional_object, or_default, snake_case};
use crate::{Json, Metadata};

/// The `securitySchemes` object.
pub(super) fn schemes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, SecurityScheme)>, D::Error> {
    let named: Metadata = or_default(deserializer)?;
    let scheme = |value: &Json| known_scheme(value).unwrap_or_else(|| SecurityScheme::Unknown(value.clone()));
    Ok(named.iter().map(|(name, value)| (name.to_owned(), scheme(value))).collect())
}

fn known_scheme(value: &Json) -> Option<SecurityScheme> {
    #[derive(Deserialize)]
    struct SchemeCase {
        #[serde(rename = "$case")]
        case: String,
        value: Json,
    }
    let object: Metadata = value.read().ok()?;
    // A hybrid entry holds both vocabularies: the v1.0 member says more.
    for (member, kind) in MEMBERS {
        if let Some(fields) = object.get(member).or_else(|| object.get(&snake_case(member))) {
            return scheme_of_kind(kind, fields);
        }
    }
    if let Some(union) = object.get("scheme").filter(|scheme| scheme.is_object()) {
        let SchemeCase { case, value } = union.read().ok()?;
        let (_, kind) = MEMBERS.into_iter().find(|(member, _)| *member == case)?;
        return scheme_of_kind(kind, &value);
    }
    scheme_of_kind(&object.get("type")?.as_text()?, value)
}

/// The v1.0 member of each scheme and its v0.3 type.
const MEMBERS: [(&str, &str); 5] = [
    ("apiKeySecurityScheme", "apiKey"),
    ("httpAuthSecurityScheme", "http"),
    ("oauth2SecurityScheme", "oauth2"),
    ("openIdConnectSecurityScheme", "openIdConnect"),
    ("mtlsSecurityScheme", "mutualTLS"),
];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    #[serde(alias = "in", deserialize_with = "or_default")]
    location: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    scheme: String,
    #[serde(alias = "bearer_format", deserialize_with = "non_empty")]
    bearer_format: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    flows: Option<OAuthFlows>,
    #[serde(alias = "oauth2_metadata_url", deserialize_with = "non_empty")]
    oauth2_metadata_url: Option<String>,
    #[serde(alias = "open_id_connect_url", deserialize_with = "or_default")]
    open_id_connect_url: String,
    #[serde(deserialize_with = "non_empty")]
    description: Option<String>,
}

fn scheme_of_kind(kind: &str, fields: &Json) -> Option<SecurityScheme> {
    let fields: Fields = fields.read().ok()?;
    let description = fields.description;
    match kind {
        "apiKey" => Some(SecurityScheme::ApiKey { location: fields.location, name: fields.name, description }),
        "http" => {
            Some(SecurityScheme::Http { scheme: fields.scheme, bearer_format: fields.bearer_format, description })
        }
        "oauth2" => Some(SecurityScheme::OAuth2 {
            flows: Box::new(fields.flows.unwrap_or_default()),
            oauth2_metadata_url: fields.oauth2_metadata_url,
            description,
        }),
        "openIdConnect" => {
            Some(SecurityScheme::OpenIdConnect { open_id_connect_url: fields.open_id_connect_url, description })
        }
        "mutualTLS" => Some(SecurityScheme::MutualTls { description }),
        _ => None,
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlowsWire {
    /// The union as one SDK holds it in memory.
    #[serde(deserialize_with = "optional_object")]
    flow: Option<FlowCase>,
    #[serde(alias = "authorization_code", deserialize_with = "optional_object")]
    authorization_code: Option<OAuthFlow>,
    #[serde(alias = "client_credentials", deserialize_with = "optional_object")]
    client_credentials: Option<OAuthFlow>,
    #[serde(alias = "device_code", deserialize_with = "optional_object")]
    device_code: Option<OAuthFlow>,
    #[serde(deserialize_with = "optional_object")]
    implicit: Option<OAuthFlow>,
    #[serde(deserialize_with = "optional_object")]
    password: Option<OAuthFlow>,
}

#[derive(Deserialize)]
struct FlowCase {
    #[serde(rename = "$case")]
    case: String,
    value: OAuthFlow,
}

impl From<FlowsWire> for OAuthFlows {
    fn from(wire: FlowsWire) -> Self {
        let FlowsWire { flow, authorization_code, client_credentials, device_code, implicit, password } = wire;
        let mut flows = Self { authorization_code, client_credentials, device_code, implicit, password };
        let Some(FlowCase { case, value }) = flow else { return flows };
        match case.as_str() {
            "authorizationCode" => flows.authorization_code = Some(value),
            "clientCredentials" => flows.client_credentials = Some(value),
            "deviceCode" => flows.device_code = Some(value),
            "implicit" => flows.implicit = Some(value),
            "password" => flows.password = Some(value),
            _ => {}
        }
        flows
    }
}

pub(super) fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    let scopes: Metadata = or_default(deserializer)?;
    Ok(scopes.iter().map(|(name, what)| (name.to_owned(), what.as_text().unwrap_or_default())).collect())
}

impl<'de> Deserialize<'de> for SecurityRequirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Metadata::deserialize(deserializer)?;
        let wrapped: Option<Metadata> =
            object.get("schemes").filter(|schemes| schemes.is_object()).and_then(|schemes| schemes.read().ok());
        let schemes = wrapped.as_ref().unwrap_or(&object);
        Ok(Self(schemes.iter().map(|(name, scopes)| (name.to_owned(), scope_list(scopes))).collect()))
    }
}

/// `["a"]`, `{"list":["a"]}`, or `{}` for none.
fn scope_list(value: &Json) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Listed {
        #[serde(deserialize_with = "or_default")]
        list: Vec<String>,
    }
    if value.is_object() {
        return value.read::<Listed>().unwrap_or_default().list;
    }
    value.read().unwrap_or_default()
}
