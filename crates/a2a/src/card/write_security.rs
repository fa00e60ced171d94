//! Security schemes and requirements as JSON: `{"httpAuthSecurityScheme":{…}}` for v1.0, `{"type":"http",…}` for
//! v0.3, both in one object for a hybrid card and on v0.3 REST.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::write::CardFormat;
use super::{OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme};
use crate::write_json::{OrderedMap, optional};

pub(super) struct SchemesView<'a> {
    pub(super) schemes: &'a [(String, SecurityScheme)],
    pub(super) form: CardFormat,
}

impl Serialize for SchemesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schemes = self.schemes.iter();
        serializer.collect_map(schemes.map(|(name, scheme)| (name, SchemeView { scheme, form: self.form })))
    }
}

struct SchemeView<'a> {
    scheme: &'a SecurityScheme,
    form: CardFormat,
}

impl Serialize for SchemeView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (member, type_name) = match self.scheme {
            SecurityScheme::ApiKey { .. } => ("apiKeySecurityScheme", "apiKey"),
            SecurityScheme::Http { .. } => ("httpAuthSecurityScheme", "http"),
            SecurityScheme::OAuth2 { .. } => ("oauth2SecurityScheme", "oauth2"),
            SecurityScheme::OpenIdConnect { .. } => ("openIdConnectSecurityScheme", "openIdConnect"),
            SecurityScheme::MutualTls { .. } => ("mtlsSecurityScheme", "mutualTLS"),
            SecurityScheme::Unknown(raw) => return raw.serialize(serializer),
        };
        let mut map = serializer.serialize_map(None)?;
        if self.form.has_scheme_members() {
            map.serialize_entry(member, &V1Fields(self.scheme))?;
        }
        if self.form.has_v03() {
            map.serialize_entry("type", type_name)?;
            scheme_fields(&mut map, self.scheme, false)?;
        }
        map.end()
    }
}

struct V1Fields<'a>(&'a SecurityScheme);

impl Serialize for V1Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        scheme_fields(&mut map, self.0, true)?;
        map.end()
    }
}

fn scheme_fields<M: SerializeMap>(map: &mut M, scheme: &SecurityScheme, is_v1: bool) -> Result<(), M::Error> {
    let description = match scheme {
        SecurityScheme::ApiKey { location, name, description } => {
            map.serialize_entry(if is_v1 { "location" } else { "in" }, location)?;
            map.serialize_entry("name", name)?;
            description
        }
        SecurityScheme::Http { scheme, bearer_format, description } => {
            map.serialize_entry("scheme", scheme)?;
            optional(map, "bearerFormat", bearer_format.as_ref())?;
            description
        }
        SecurityScheme::OAuth2 { flows, oauth2_metadata_url, description } => {
            map.serialize_entry("flows", &FlowsView { flows, is_v1 })?;
            optional(map, "oauth2MetadataUrl", oauth2_metadata_url.as_ref())?;
            description
        }
        SecurityScheme::OpenIdConnect { open_id_connect_url, description } => {
            map.serialize_entry("openIdConnectUrl", open_id_connect_url)?;
            description
        }
        SecurityScheme::MutualTls { description } => description,
        SecurityScheme::Unknown(_) => return Ok(()),
    };
    optional(map, "description", description.as_ref())
}

struct FlowsView<'a> {
    flows: &'a OAuthFlows,
    is_v1: bool,
}

impl Serialize for FlowsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_v1 {
            return serializer.collect_map(self.flows.preferred());
        }
        // v0.3 has neither the device flow nor PKCE.
        let flows = self.flows.by_name().filter(|(name, _)| *name != "deviceCode");
        serializer.collect_map(flows.map(|(name, flow)| (name, OAuthFlow { pkce_required: false, ..flow.clone() })))
    }
}

/// The requirements in the vocabularies that the form prints; nothing where there are none.
pub(super) fn requirement_entries<M: SerializeMap>(
    map: &mut M,
    requirements: &[SecurityRequirement],
    form: CardFormat,
) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    struct V1Requirement<'a> {
        schemes: V1Schemes<'a>,
    }
    if requirements.is_empty() {
        return Ok(());
    }
    let all = requirements.iter();
    if form.has_v1() {
        let list: Vec<_> = all.clone().map(|of| V1Requirement { schemes: V1Schemes(&of.0) }).collect();
        map.serialize_entry("securityRequirements", &list)?;
    }
    if form.has_v03() {
        let list: Vec<_> = all.map(|SecurityRequirement(schemes)| OrderedMap(schemes)).collect();
        map.serialize_entry("security", &list)?;
    }
    Ok(())
}

struct V1Schemes<'a>(&'a [(String, Vec<String>)]);

impl Serialize for V1Schemes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Scopes<'a> {
            list: &'a [String],
        }
        serializer.collect_map(self.0.iter().map(|(name, list)| (name, Scopes { list })))
    }
}
