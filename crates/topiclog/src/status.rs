//! Which status a failure beneath the backend is (the status table of contract section 7).

use conclave_grpc_web::Status;
use conclave_sql::SqlError;

use crate::platform::CallError;

/// A call that has no answer: its outcome is unknown, and whoever asked may ask again.
pub(crate) fn from_call_error(error: &CallError) -> Status {
    match error {
        CallError::DeadlineExceeded { .. } => Status::deadline_exceeded(error.to_string()),
        CallError::OutcomeUnknown { .. } => Status::unavailable(error.to_string()),
    }
}

/// A store that fails is out of reach; one that holds what it should not is broken.
pub(crate) fn from_sql_error(error: &SqlError) -> Status {
    match error {
        SqlError::Database { .. } => Status::unavailable(format!("the store failed: {error}")),
        SqlError::Constraint { .. } | SqlError::Shape { .. } | SqlError::IntegerRange { .. } => {
            Status::internal(format!("a stored value breaks an invariant: {error}"))
        }
    }
}
