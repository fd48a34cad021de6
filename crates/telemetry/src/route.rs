//! The three labels of an RPC. Depends on nothing.

/// Which RPC a request is for. Of a fixed number, so that no caller can make labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    path: &'static str,
}

/// What stands for a path that is no RPC's.
const UNKNOWN: &str = "unknown";

/// The paths of RPCs that are no unary ones. The health Watch counts as unary.
const BIDIRECTIONAL: &str = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const SERVER_STREAM: &str = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";
/// What the paths of health RPCs begin with. They are not counted and not logged.
const HEALTH_PREFIX: &str = "/grpc.health.v1.";

impl Route {
    /// A path that is no RPC's.
    pub const UNKNOWN: Self = Self { path: UNKNOWN };

    /// The route of a path, `/package.Service/Method`, that the service knows. The path is part of the program: a caller's
    /// own text cannot get here.
    #[must_use]
    pub fn of(path: Option<&'static str>) -> Self {
        path.map_or(Self::UNKNOWN, |path| Self { path })
    }

    /// The path, or `unknown`.
    #[must_use]
    pub fn path(self) -> &'static str {
        self.path
    }

    /// `grpc_service` and `grpc_method`.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        self.path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .unwrap_or((UNKNOWN, UNKNOWN))
    }

    /// `grpc_type`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self.path {
            BIDIRECTIONAL => "bidi_stream",
            SERVER_STREAM => "server_stream",
            _ => "unary",
        }
    }

    /// Whether it asks for health, which is neither counted nor logged (OPS-018).
    #[must_use]
    pub fn is_health(self) -> bool {
        self.path.starts_with(HEALTH_PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_labels_of_its_halves() {
        let route = Route::of(Some("/xmtp.backend.v1.PublishService/Publish"));
        assert_eq!(route.names(), ("xmtp.backend.v1.PublishService", "Publish"));
        assert_eq!((route.kind(), route.is_health()), ("unary", false));
        assert_eq!(Route::of(Some(BIDIRECTIONAL)).kind(), "bidi_stream");
        assert_eq!(Route::of(Some(SERVER_STREAM)).kind(), "server_stream");
        assert!(Route::of(Some("/grpc.health.v1.Health/Watch")).is_health());
        assert_eq!(Route::of(None).names(), ("unknown", "unknown"));
        assert_eq!(Route::of(None).kind(), "unary");
    }
}
