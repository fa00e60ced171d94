//! A request in the words of the interface that it is put at.

use std::borrow::Cow;

use switchboard_a2a::{Dialect, PushRequest, Request, Version};

use crate::Interface;

/// The request as it can be put at an interface: with its tenant, and without what its dialect has no words for.
pub(crate) fn adapt_request<'a>(request: &'a Request, interface: &Interface) -> Cow<'a, Request> {
    let wanted = interface.tenant.clone().filter(|_| interface.version == Version::V1);
    if wanted.is_none() && interface.dialect() == Dialect::V1 {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    let tenant = match &mut request {
        Request::Send(request) => &mut request.tenant,
        Request::List(request) => &mut request.tenant,
        Request::Get { tenant, .. }
        | Request::Cancel { tenant, .. }
        | Request::Subscribe { tenant, .. }
        | Request::ExtendedCard { tenant }
        | Request::Push(
            PushRequest::Get { tenant, .. } | PushRequest::List { tenant, .. } | PushRequest::Delete { tenant, .. },
        ) => tenant,
        Request::Push(PushRequest::Create(config)) => &mut config.tenant,
    };
    if tenant.is_none() {
        *tenant = wanted;
    }
    let left_out = request.reduce_to(interface.dialect());
    if !left_out.is_empty() {
        tracing::debug!(fields = left_out.join(", "), dialect = %interface.dialect(), "this dialect has no place for them");
    }
    if let Request::Push(PushRequest::Create(config)) = &mut request
        && interface.dialect() == Dialect::V03Rest
    {
        // It is part of the path there.
        config.id.get_or_insert_with(|| uuid::Uuid::now_v7().to_string());
    }
    Cow::Owned(request)
}
