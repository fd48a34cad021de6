//! The health protocol. A deployment is healthy when its platform lacks nothing and the object that plays the Sequencer
//! answers: its storage is there, its schema is current and its birth fits the configuration. Every service shares that one status (OPS-004).

use std::collections::HashMap;

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::grpc::health::v1::{
    HealthCheckRequest, HealthCheckResponse, HealthListResponse, health_check_response::ServingStatus,
};
use prost::Message as _;

use super::{Backend, CallContext, decode};
use crate::platform::Platform;

/// The services there are; the empty name is the deployment as a whole.
const SERVICES: [&str; 11] = [
    "",
    "xmtp.backend.v1.PublishService",
    "xmtp.backend.v1.QueryService",
    "xmtp.backend.v1.SubscriptionService",
    "xmtp.backend.v1.IdentityService",
    "xmtp.backend.v1.ConfigurationService",
    "xmtp.backend.v1.NotificationService",
    "xmtp.backend.v1.AttachmentService",
    "conclave.registry.v1.RegistryService",
    "conclave.router.v1.RouterService",
    "conclave.operator.v1.OperatorService",
];

/// Whether health is reported for a service name.
pub(super) fn is_known(service: &str) -> bool {
    SERVICES.contains(&service)
}

impl<P: Platform> Backend<P> {
    pub(super) async fn check_health(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<Vec<u8>, Status> {
        let HealthCheckRequest { service } = decode(message)?;
        if !is_known(&service) {
            return Err(Status::not_found("there is no service of that name"));
        }
        Ok(self.health(context).await.encode_to_vec())
    }

    pub(super) async fn list_health(&self, context: &CallContext) -> Result<Vec<u8>, Status> {
        let health = self.health(context).await;
        let statuses: HashMap<String, HealthCheckResponse> = SERVICES
            .iter()
            .map(|service| ((*service).to_owned(), health))
            .collect();
        Ok(HealthListResponse { statuses }.encode_to_vec())
    }

    pub(super) async fn health(&self, context: &CallContext) -> HealthCheckResponse {
        let is_serving =
            self.platform.is_ready().await && self.ask_sequencer("instance", context).await.is_ok();
        let status = if is_serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        HealthCheckResponse {
            status: status.into(),
        }
    }
}
