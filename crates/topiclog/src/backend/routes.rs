//! Which paths there are.

use conclave_grpc_web::Status;
use conclave_proto::{
    Rpc, RpcKind,
    conclave::{operator::v1::operator_service, registry::v1::registry_service, router::v1::router_service},
    grpc::health::v1::health,
    xmtp::backend::v1::{
        attachment_service, configuration_service, identity_service, notification_service, publish_service,
        query_service, subscription_service,
    },
};

/// An RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Publish,
    Query,
    QueryNewest,
    GetInboxIds,
    Subscribe,
    SubscribeStatic,
    GetConfiguration,
    VerifyWalletSignatures,
    RegisterRecipient,
    UnregisterRecipient,
    UpdateSubscriptions,
    CreateUpload,
    HealthCheck,
    HealthList,
    HealthWatch,
    GetInstance,
    GetStatus,
    Registry,
}

struct Served {
    path: &'static str,
    kind: RpcKind,
    route: Route,
}

const fn served<R: Rpc>(route: Route) -> Served {
    Served {
        path: R::PATH,
        kind: R::KIND,
        route,
    }
}

const SERVED: [Served; 21] = [
    served::<publish_service::Publish>(Route::Publish),
    served::<query_service::Query>(Route::Query),
    served::<query_service::QueryNewest>(Route::QueryNewest),
    served::<identity_service::GetInboxIds>(Route::GetInboxIds),
    served::<subscription_service::Subscribe>(Route::Subscribe),
    served::<subscription_service::SubscribeStatic>(Route::SubscribeStatic),
    served::<configuration_service::GetConfiguration>(Route::GetConfiguration),
    served::<identity_service::VerifySmartContractWalletSignatures>(Route::VerifyWalletSignatures),
    served::<notification_service::Register>(Route::RegisterRecipient),
    served::<notification_service::Unregister>(Route::UnregisterRecipient),
    served::<notification_service::UpdateSubscriptions>(Route::UpdateSubscriptions),
    served::<attachment_service::CreateUpload>(Route::CreateUpload),
    served::<health::Check>(Route::HealthCheck),
    served::<health::List>(Route::HealthList),
    served::<health::Watch>(Route::HealthWatch),
    served::<router_service::GetInstance>(Route::GetInstance),
    served::<operator_service::GetStatus>(Route::GetStatus),
    served::<registry_service::GetSigner>(Route::Registry),
    served::<registry_service::Register>(Route::Registry),
    served::<registry_service::Lookup>(Route::Registry),
    served::<registry_service::List>(Route::Registry),
];

pub(super) fn find(path: &str) -> Option<Route> {
    SERVED
        .iter()
        .find(|served| served.path == path)
        .map(|served| served.route)
}

/// A path that is served, as this program spells it.
pub(super) fn served_path(path: &str) -> Option<&'static str> {
    SERVED
        .iter()
        .find(|served| served.path == path)
        .map(|served| served.path)
}

/// How messages travel at `path`.
pub(super) fn kind(path: &str) -> Option<RpcKind> {
    SERVED
        .iter()
        .find(|served| served.path == path)
        .map(|served| served.kind)
}

/// UNIMPLEMENTED, in words that tell a path that is called in another way from one that does not exist.
pub(super) fn not_served(path: &str) -> Status {
    if find(path).is_some() {
        return Status::unimplemented(format!("{path} is not called this way"));
    }
    Status::unimplemented(format!("there is no RPC {path}"))
}
