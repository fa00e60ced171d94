//! Reads security schemes and requirements in every form seen, `$case` objects included. What nobody knows is kept.

use serde::{Deserialize, Deserializer};

use super::{OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme};
use crate::lenient::{flag, non_empty, optional_object, or_default, snake_case};
use crate::{Json, Metadata};

/// The `securitySchemes` object.
#[derive(Default)]
pub(super) struct Schemes(pub(super) Vec<(String, SecurityScheme)>);

impl<'de> Deserialize<'de> for Schemes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Metadata::deserialize(deserializer)?;
        Ok(Self(named.iter().map(|(name, value)| (name.to_owned(), scheme(value))).collect()))
    }
}

fn scheme(value: &Json) -> SecurityScheme {
    let unknown = || SecurityScheme::Unknown(value.clone());
    let Ok(object) = value.read::<Metadata>() else {
        return unknown();
    };
    // A hybrid entry holds both vocabularies: the v1.0 member says more.
    for (member, kind) in MEMBERS {
        if let Some(fields) = object.get(member).or_else(|| object.get(&snake_case(member))) {
            return known(kind, fields).unwrap_or_else(unknown);
        }
    }
    if let Some(case) = object.get("scheme").filter(|scheme| scheme.is_object()) {
        #[derive(Deserialize)]
        struct Case {
            #[serde(rename = "$case")]
            case: String,
            value: Json,
        }
        let read: Option<Case> = case.read().ok();
        let kind = read.as_ref().and_then(|read| MEMBERS.iter().find(|(member, _)| *member == read.case));
        return match (&read, kind) {
            (Some(read), Some((_, kind))) => known(kind, &read.value).unwrap_or_else(unknown),
            _ => unknown(),
        };
    }
    match object.get("type").and_then(Json::as_text) {
        Some(kind) => known(&kind, value).unwrap_or_else(unknown),
        None => unknown(),
    }
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
    flows: Option<FlowsWire>,
    #[serde(alias = "oauth2_metadata_url", deserialize_with = "non_empty")]
    oauth2_metadata_url: Option<String>,
    #[serde(alias = "open_id_connect_url", deserialize_with = "or_default")]
    open_id_connect_url: String,
    #[serde(deserialize_with = "non_empty")]
    description: Option<String>,
}

fn known(kind: &str, fields: &Json) -> Option<SecurityScheme> {
    let fields: Fields = fields.read().ok()?;
    let description = fields.description;
    match kind {
        "apiKey" => Some(SecurityScheme::ApiKey { location: fields.location, name: fields.name, description }),
        "http" => {
            Some(SecurityScheme::Http { scheme: fields.scheme, bearer_format: fields.bearer_format, description })
        }
        "oauth2" => Some(SecurityScheme::OAuth2 {
            flows: Box::new(fields.flows.unwrap_or_default().into_flows()),
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
struct FlowsWire {
    /// The union as one SDK holds it in memory.
    #[serde(deserialize_with = "optional_object")]
    flow: Option<FlowCase>,
    #[serde(alias = "authorization_code", deserialize_with = "optional_object")]
    authorization_code: Option<FlowWire>,
    #[serde(alias = "client_credentials", deserialize_with = "optional_object")]
    client_credentials: Option<FlowWire>,
    #[serde(alias = "device_code", deserialize_with = "optional_object")]
    device_code: Option<FlowWire>,
    #[serde(deserialize_with = "optional_object")]
    implicit: Option<FlowWire>,
    #[serde(deserialize_with = "optional_object")]
    password: Option<FlowWire>,
}

#[derive(Deserialize)]
struct FlowCase {
    #[serde(rename = "$case")]
    case: String,
    value: FlowWire,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlowWire {
    #[serde(alias = "authorization_url", deserialize_with = "non_empty")]
    authorization_url: Option<String>,
    #[serde(alias = "device_authorization_url", deserialize_with = "non_empty")]
    device_authorization_url: Option<String>,
    #[serde(alias = "token_url", deserialize_with = "non_empty")]
    token_url: Option<String>,
    #[serde(alias = "refresh_url", deserialize_with = "non_empty")]
    refresh_url: Option<String>,
    scopes: Option<Metadata>,
    #[serde(alias = "pkce_required", deserialize_with = "flag")]
    pkce_required: bool,
}

impl FlowsWire {
    fn into_flows(mut self) -> OAuthFlows {
        if let Some(FlowCase { case, value }) = self.flow.take() {
            match case.as_str() {
                "authorizationCode" => self.authorization_code = Some(value),
                "clientCredentials" => self.client_credentials = Some(value),
                "deviceCode" => self.device_code = Some(value),
                "implicit" => self.implicit = Some(value),
                "password" => self.password = Some(value),
                _ => {}
            }
        }
        OAuthFlows {
            authorization_code: self.authorization_code.map(FlowWire::into_flow),
            client_credentials: self.client_credentials.map(FlowWire::into_flow),
            device_code: self.device_code.map(FlowWire::into_flow),
            implicit: self.implicit.map(FlowWire::into_flow),
            password: self.password.map(FlowWire::into_flow),
        }
    }
}

impl FlowWire {
    fn into_flow(self) -> OAuthFlow {
        let scopes = self.scopes.unwrap_or_default();
        OAuthFlow {
            authorization_url: self.authorization_url,
            device_authorization_url: self.device_authorization_url,
            token_url: self.token_url,
            refresh_url: self.refresh_url,
            scopes: scopes.iter().map(|(name, what)| (name.to_owned(), what.as_text().unwrap_or_default())).collect(),
            pkce_required: self.pkce_required,
        }
    }
}

/// A list of requirements, v1.0 or v0.3.
#[derive(Default)]
pub(super) struct Requirements(Vec<SecurityRequirement>);

impl<'de> Deserialize<'de> for Requirements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::<Metadata>::deserialize(deserializer)?;
        Ok(Self(list.iter().map(requirement).collect()))
    }
}

/// Hybrid cards hold the same requirements under both names.
pub(super) fn either(new: Requirements, old: Requirements) -> Vec<SecurityRequirement> {
    if new.0.is_empty() { old.0 } else { new.0 }
}

fn requirement(object: &Metadata) -> SecurityRequirement {
    let wrapped: Option<Metadata> =
        object.get("schemes").filter(|schemes| schemes.is_object()).and_then(|schemes| schemes.read().ok());
    let schemes = wrapped.as_ref().unwrap_or(object);
    SecurityRequirement(schemes.iter().map(|(name, scopes)| (name.to_owned(), scope_list(scopes))).collect())
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
