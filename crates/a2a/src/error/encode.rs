//! Errors as bytes: v1.0 with `google.rpc` details, v0.3 with a plain `data` object.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Error, Violation};
use crate::Dialect;
use crate::jsonrpc::{RpcId, write_prefix};
use crate::write_json::{OrderedMap, append, non_empty_list, optional};

const DOMAIN: &str = "a2a-protocol.org";

impl Error {
    /// The whole JSON-RPC response.
    pub fn encode_json_rpc(&self, dialect: Dialect, id: &RpcId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        write_prefix(id, b",\"error\":", &mut bytes);
        match dialect {
            Dialect::V1 => append(&mut bytes, &self.rpc_object_v1()),
            Dialect::V03Rpc | Dialect::V03Rest => append(&mut bytes, &self.object_v03(dialect)),
        }
        bytes.push(b'}');
        bytes
    }

    /// The body of a REST response.
    pub fn encode_rest(&self, dialect: Dialect) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Status<'a>,
        }
        #[derive(Serialize)]
        struct Status<'a> {
            code: u16,
            status: &'static str,
            message: &'a str,
            details: Vec<Detail<'a>>,
        }
        let mut bytes = Vec::with_capacity(256);
        match dialect {
            Dialect::V1 => {
                let entry = self.kind.entry();
                let details = self.details();
                let error = Status { code: entry.http, status: entry.grpc, message: &self.message, details };
                append(&mut bytes, &Body { error });
            }
            Dialect::V03Rpc | Dialect::V03Rest => append(&mut bytes, &self.object_v03(dialect)),
        }
        bytes
    }

    /// The HTTP status on REST.
    pub fn http_status(&self, dialect: Dialect) -> u16 {
        self.kind.http_status(dialect)
    }

    fn rpc_object_v1(&self) -> RpcObject<'_, Vec<Detail<'_>>> {
        RpcObject { code: self.kind.code(Dialect::V1), message: &self.message, data: Some(self.details()) }
    }

    fn object_v03(&self, dialect: Dialect) -> RpcObject<'_, PlainData<'_>> {
        let reason = self.kind.needs_reason_in_v03().then(|| self.kind.entry().reason);
        let has_data = reason.is_some() || !self.metadata.is_empty() || !self.violations.is_empty();
        let data = PlainData { reason, metadata: &self.metadata, violations: &self.violations };
        RpcObject { code: self.kind.code(dialect), message: &self.message, data: has_data.then_some(data) }
    }

    fn details(&self) -> Vec<Detail<'_>> {
        let mut details = vec![Detail::ErrorInfo {
            reason: self.kind.entry().reason,
            domain: DOMAIN,
            metadata: non_empty_list(&self.metadata).map(OrderedMap),
        }];
        if !self.violations.is_empty() {
            details.push(Detail::BadRequest { field_violations: &self.violations });
        }
        details
    }
}

#[derive(Serialize)]
struct RpcObject<'a, D> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<D>,
}

#[derive(Serialize)]
#[serde(tag = "@type")]
enum Detail<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo {
        reason: &'static str,
        domain: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<OrderedMap<'a, String>>,
    },
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest", rename_all = "camelCase")]
    BadRequest { field_violations: &'a [Violation] },
}

/// What v0.3 callers get: the facts themselves, without the type names they do not know.
struct PlainData<'a> {
    reason: Option<&'static str>,
    metadata: &'a [(String, String)],
    violations: &'a [Violation],
}

impl Serialize for PlainData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        optional(&mut map, "reason", self.reason)?;
        for (key, value) in self.metadata {
            map.serialize_entry(key, value)?;
        }
        optional(&mut map, "fieldViolations", non_empty_list(self.violations))?;
        map.end()
    }
}
