//! The paths that never need a credential (AUTH-002, CONF-010). Depends on nothing.

/// What the paths of public RPCs begin with: health, and the configuration a client reads before anything else.
pub const PUBLIC_PREFIXES: [&str; 2] = ["/grpc.health.v1.", "/xmtp.backend.v1.ConfigurationService/"];

/// Whether the `authorization` header of a request to this path is not even read.
#[must_use]
pub fn is_public(path: &str) -> bool {
    PUBLIC_PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_and_configuration_alone_are_public() {
        for path in [
            "/grpc.health.v1.Health/Check",
            "/grpc.health.v1.Health/Watch",
            "/xmtp.backend.v1.ConfigurationService/GetConfiguration",
        ] {
            assert!(is_public(path), "{path}");
        }
        for path in [
            "/",
            "/metrics",
            "/grpc.health.v2.Health/Check",
            "/xmtp.backend.v1.ConfigurationServiceX/GetConfiguration",
            "/xmtp.backend.v1.PublishService/Publish",
            "/conclave.operator.v1.OperatorService/GetStatus",
            "//grpc.health.v1.Health/Check",
        ] {
            assert!(!is_public(path), "{path}");
        }
    }
}
