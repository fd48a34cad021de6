//! The line that is written when a request is over (OPS-018), and the one for a refused credential (OPS-013, AUTH-027).
//! Depends on [`crate::route`] and [`crate::trace_context`].

use conclave_grpc_web::Code;

use crate::{
    Route, TraceId,
    text::{code_name, push_json_string},
};

/// What is known of a request when its response has ended, failed or been cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What it was for.
    pub route: Route,
    /// How it ended.
    pub code: Code,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The bytes of its body, framing included.
    pub request_bytes: u64,
    /// The bytes of the response's body, framing included.
    pub response_bytes: u64,
}

/// What tells a request from others in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Its id, made here; the response names it.
    pub request_id: String,
    /// The trace its caller says it belongs to.
    pub trace_id: Option<TraceId>,
}

impl Completion {
    /// The line: one JSON object. `identifier` names the deployment; `principal` is the name of the API key that was
    /// presented (AUTH-028).
    #[must_use]
    pub fn line(&self, request: &RequestIdentity, identifier: &str, principal: Option<&str>) -> String {
        let mut line = begin("request completed", request, identifier);
        push_member(&mut line, "method", self.route.path());
        push_member(&mut line, "grpc_code", &code_name(self.code));
        for (name, number) in [
            ("duration_ms", self.duration_ms),
            ("request_size_bytes", self.request_bytes),
            ("response_size_bytes", self.response_bytes),
        ] {
            line.push_str(&format!(",\"{name}\":{number}"));
        }
        if let Some(trace_id) = &request.trace_id {
            push_member(&mut line, "trace_id", trace_id.as_str());
        }
        if let Some(principal) = principal {
            push_member(&mut line, "auth_principal", principal);
        }
        line.push('}');
        line
    }
}

/// The line for a credential that was refused for this reason.
#[must_use]
pub fn rejection_line(request: &RequestIdentity, identifier: &str, reason: &'static str) -> String {
    let mut line = begin("credential rejected", request, identifier);
    push_member(&mut line, "reason", reason);
    line.push('}');
    line
}

fn begin(message: &'static str, request: &RequestIdentity, identifier: &str) -> String {
    let mut line = String::from("{\"message\":");
    push_json_string(&mut line, message);
    push_member(&mut line, "request_id", &request.request_id);
    push_member(&mut line, "identifier", identifier);
    line
}

fn push_member(line: &mut String, name: &str, value: &str) {
    line.push(',');
    push_json_string(line, name);
    line.push(':');
    push_json_string(line, value);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(line: &str) -> Value {
        serde_json::from_str(line).expect("one JSON value")
    }

    fn request(trace_id: Option<TraceId>) -> RequestIdentity {
        RequestIdentity {
            request_id: "8d1f2e0c-0000-4000-8000-000000000000".to_owned(),
            trace_id,
        }
    }

    // OPS-013, OPS-018
    #[test]
    fn a_completed_request_is_one_line_of_exactly_these_fields() {
        let completion = Completion {
            route: Route::of(Some("/xmtp.backend.v1.QueryService/Query")),
            code: Code::InvalidArgument,
            duration_ms: 12,
            request_bytes: 34,
            response_bytes: 56,
        };
        let trace = TraceId::of_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let line = completion.line(&request(trace), "talk \"example\"\\", Some("ops"));
        assert!(!line.contains('\n'));
        let expected = json!({
            "message": "request completed",
            "request_id": "8d1f2e0c-0000-4000-8000-000000000000",
            "identifier": "talk \"example\"\\",
            "method": "/xmtp.backend.v1.QueryService/Query",
            "grpc_code": "InvalidArgument",
            "duration_ms": 12,
            "request_size_bytes": 34,
            "response_size_bytes": 56,
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "auth_principal": "ops",
        });
        assert_eq!(parsed(&line), expected);
        let bare = parsed(&completion.line(&request(None), "x", None));
        assert!(bare.get("trace_id").is_none() && bare.get("auth_principal").is_none());
    }

    // AUTH-027
    #[test]
    fn a_rejection_says_which_request_where_and_why_and_nothing_else() {
        let line = rejection_line(&request(None), "x", "expired");
        let expected = json!({
            "message": "credential rejected",
            "request_id": "8d1f2e0c-0000-4000-8000-000000000000",
            "identifier": "x",
            "reason": "expired",
        });
        assert_eq!(parsed(&line), expected);
    }
}
