//! Security schemes and requirements as bytes: `{"httpAuthSecurityScheme":{…}}` for v1.0, `{"type":"http",…}` for
//! v0.3, both in one object for a hybrid card and on v0.3 REST.

use serde::ser::{SerializeMap, Serializer};
use serde::{Serialize, ser::SerializeSeq};

use super::write::CardForm;
use super::{OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme};

pub(super) struct SchemeMap<'a> {
    pub(super) schemes: &'a [(String, SecurityScheme)],
    pub(super) form: CardForm,
}

impl SchemeMap<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.schemes.is_empty()
    }
}

impl Serialize for SchemeMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schemes = self.schemes.iter();
        serializer.collect_map(schemes.map(|(name, scheme)| (name, SchemeView { scheme, form: self.form })))
    }
}

struct SchemeView<'a> {
    scheme: &'a SecurityScheme,
    form: CardForm,
}

impl Serialize for SchemeView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let SecurityScheme::Unknown(raw) = self.scheme {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        if self.form.has_scheme_members() {
            map.serialize_entry(member(self.scheme), &Fields { scheme: self.scheme, is_v1: true })?;
        }
        if self.form.has_v03() {
            map.serialize_entry("type", type_name(self.scheme))?;
            fields(&mut map, self.scheme, false)?;
        }
        map.end()
    }
}

struct Fields<'a> {
    scheme: &'a SecurityScheme,
    is_v1: bool,
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        fields(&mut map, self.scheme, self.is_v1)?;
        map.end()
    }
}

fn member(scheme: &SecurityScheme) -> &'static str {
    match scheme {
        SecurityScheme::ApiKey { .. } => "apiKeySecurityScheme",
        SecurityScheme::Http { .. } => "httpAuthSecurityScheme",
        SecurityScheme::OAuth2 { .. } => "oauth2SecurityScheme",
        SecurityScheme::OpenIdConnect { .. } => "openIdConnectSecurityScheme",
        SecurityScheme::MutualTls { .. } => "mtlsSecurityScheme",
        SecurityScheme::Unknown(_) => "unknownSecurityScheme",
    }
}

fn type_name(scheme: &SecurityScheme) -> &'static str {
    match scheme {
        SecurityScheme::ApiKey { .. } => "apiKey",
        SecurityScheme::Http { .. } => "http",
        SecurityScheme::OAuth2 { .. } => "oauth2",
        SecurityScheme::OpenIdConnect { .. } => "openIdConnect",
        SecurityScheme::MutualTls { .. } => "mutualTLS",
        SecurityScheme::Unknown(_) => "unknown",
    }
}

fn fields<M: SerializeMap>(map: &mut M, scheme: &SecurityScheme, is_v1: bool) -> Result<(), M::Error> {
    let description = match scheme {
        SecurityScheme::ApiKey { location, name, description } => {
            map.serialize_entry(if is_v1 { "location" } else { "in" }, location)?;
            map.serialize_entry("name", name)?;
            description
        }
        SecurityScheme::Http { scheme, bearer_format, description } => {
            map.serialize_entry("scheme", scheme)?;
            optional(map, "bearerFormat", bearer_format.as_deref())?;
            description
        }
        SecurityScheme::OAuth2 { flows, oauth2_metadata_url, description } => {
            map.serialize_entry("flows", &FlowsView { flows, is_v1 })?;
            optional(map, "oauth2MetadataUrl", oauth2_metadata_url.as_deref())?;
            description
        }
        SecurityScheme::OpenIdConnect { open_id_connect_url, description } => {
            map.serialize_entry("openIdConnectUrl", open_id_connect_url)?;
            description
        }
        SecurityScheme::MutualTls { description } => description,
        SecurityScheme::Unknown(_) => return Ok(()),
    };
    optional(map, "description", description.as_deref())
}

fn optional<M: SerializeMap>(map: &mut M, key: &'static str, value: Option<&str>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, value),
        None => Ok(()),
    }
}

struct FlowsView<'a> {
    flows: &'a OAuthFlows,
    is_v1: bool,
}

impl Serialize for FlowsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.is_v1 {
            if let Some((name, flow)) = self.flows.preferred() {
                map.serialize_entry(name, &FlowView { flow, is_v1: true })?;
            }
            return map.end();
        }
        // v0.3 has no device flow.
        let flows = [
            ("authorizationCode", &self.flows.authorization_code),
            ("clientCredentials", &self.flows.client_credentials),
            ("implicit", &self.flows.implicit),
            ("password", &self.flows.password),
        ];
        for (name, flow) in flows {
            if let Some(flow) = flow {
                map.serialize_entry(name, &FlowView { flow, is_v1: false })?;
            }
        }
        map.end()
    }
}

struct FlowView<'a> {
    flow: &'a OAuthFlow,
    is_v1: bool,
}

impl Serialize for FlowView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Scopes<'a>(&'a [(String, String)]);
        impl Serialize for Scopes<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, what)| (name, what)))
            }
        }
        let mut map = serializer.serialize_map(None)?;
        optional(&mut map, "authorizationUrl", self.flow.authorization_url.as_deref())?;
        optional(&mut map, "deviceAuthorizationUrl", self.flow.device_authorization_url.as_deref())?;
        optional(&mut map, "tokenUrl", self.flow.token_url.as_deref())?;
        optional(&mut map, "refreshUrl", self.flow.refresh_url.as_deref())?;
        map.serialize_entry("scopes", &Scopes(&self.flow.scopes))?;
        if self.is_v1 && self.flow.pkce_required {
            map.serialize_entry("pkceRequired", &true)?;
        }
        map.end()
    }
}

/// The requirements in one vocabulary; empty where the form does not print that one.
pub(super) struct Requirements<'a> {
    requirements: &'a [SecurityRequirement],
    is_v1: bool,
}

impl<'a> Requirements<'a> {
    pub(super) fn v1(requirements: &'a [SecurityRequirement], form: CardForm) -> Self {
        Self { requirements: if form.has_v1() { requirements } else { &[] }, is_v1: true }
    }

    pub(super) fn v03(requirements: &'a [SecurityRequirement], form: CardForm) -> Self {
        Self { requirements: if form.has_v03() { requirements } else { &[] }, is_v1: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Serialize for Requirements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.requirements.len()))?;
        for requirement in self.requirements {
            match self.is_v1 {
                true => list.serialize_element(&RequirementV1 { schemes: SchemesV1(requirement) })?,
                false => list.serialize_element(&RequirementV03(requirement))?,
            }
        }
        list.end()
    }
}

#[derive(Serialize)]
struct RequirementV1<'a> {
    schemes: SchemesV1<'a>,
}

struct SchemesV1<'a>(&'a SecurityRequirement);

impl Serialize for SchemesV1<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Scopes<'a> {
            list: &'a [String],
        }
        let Self(SecurityRequirement(schemes)) = self;
        serializer.collect_map(schemes.iter().map(|(name, list)| (name, Scopes { list })))
    }
}

struct RequirementV03<'a>(&'a SecurityRequirement);

impl Serialize for RequirementV03<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(SecurityRequirement(schemes)) = self;
        serializer.collect_map(schemes.iter().map(|(name, scopes)| (name, scopes)))
    }
}
