//! One module a target.

pub mod admit_identity_update;
pub mod agent_artifacts;
pub mod conversation_values;
pub mod credentials;
pub mod exported_history;
pub mod grpc_web_request;
pub mod grpc_web_response;
pub mod identity_texts;
pub mod node_answers;
pub mod outer_message;
pub mod publish_request;
pub mod read_requests;
