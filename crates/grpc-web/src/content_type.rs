//! Which gRPC-Web encoding a `content-type` names. Depends on nothing.

/// How the frames of a body are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The frames as they are.
    Binary,
    /// The frames in base64, for clients that cannot stream bytes.
    Text,
}

/// A content type of gRPC-Web with protobuf messages. Any other content type is answered with HTTP 415.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentType {
    encoding: Encoding,
}

impl ContentType {
    /// `application/grpc-web+proto`
    pub const BINARY: ContentType = ContentType {
        encoding: Encoding::Binary,
    };
    /// `application/grpc-web-text+proto`
    pub const TEXT: ContentType = ContentType {
        encoding: Encoding::Text,
    };

    /// Reads a `content-type` header: letter case does not count, parameters are ignored.
    ///
    /// `None` for everything but `application/grpc-web`, `application/grpc-web-text` and their `+proto` forms: a
    /// request with another type must not run an RPC, because some of them need no preflight.
    #[must_use]
    pub fn parse(header: &str) -> Option<ContentType> {
        let media_type = header.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        if is("application/grpc-web+proto") || is("application/grpc-web") {
            Some(ContentType::BINARY)
        } else if is("application/grpc-web-text+proto") || is("application/grpc-web-text") {
            Some(ContentType::TEXT)
        } else {
            None
        }
    }

    /// How the body is written.
    #[must_use]
    pub const fn encoding(self) -> Encoding {
        self.encoding
    }
}

impl Encoding {
    /// The content type of a body in this encoding.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Encoding::Binary => "application/grpc-web+proto",
            Encoding::Text => "application/grpc-web-text+proto",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_parameters_do_not_count() {
        for header in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "Application/GRPC-Web+Proto",
            " application/grpc-web+proto ; charset=utf-8",
        ] {
            assert_eq!(ContentType::parse(header), Some(ContentType::BINARY), "{header}");
        }
        for header in ["application/grpc-web-text", "APPLICATION/GRPC-WEB-TEXT+PROTO;x=y"] {
            assert_eq!(ContentType::parse(header), Some(ContentType::TEXT), "{header}");
        }
    }

    #[test]
    fn other_types_are_not_grpc_web() {
        for header in [
            "",
            "text/plain",
            "application/json",
            "application/grpc",
            "application/grpc+proto",
            "application/grpc-web+json",
            "application/grpc-web-texts",
            "text/plain; application/grpc-web",
        ] {
            assert_eq!(ContentType::parse(header), None, "{header}");
        }
    }

    #[test]
    fn a_body_names_the_type_its_peer_reads_back() {
        for encoding in [Encoding::Binary, Encoding::Text] {
            assert_eq!(
                ContentType::parse(encoding.content_type()).map(ContentType::encoding),
                Some(encoding)
            );
        }
    }
}
