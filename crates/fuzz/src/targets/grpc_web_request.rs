//! The body of a unary request, in both encodings, in one piece and in many.

use bytes::Bytes;
use conclave_grpc_web::{Code, Encoding, server::UnaryRequest};

const MAX_REQUEST_BYTES: usize = 4096;

fn read(encoding: Encoding, pieces: impl Iterator<Item = Vec<u8>>) -> Result<Bytes, Code> {
    let mut reader = UnaryRequest::new(encoding, MAX_REQUEST_BYTES);
    for piece in pieces {
        reader.push(&piece);
    }
    reader.finish().map_err(|status| status.code)
}

/// The first byte says how long the pieces are. However a body is cut, it means the same.
pub fn run(data: &[u8]) {
    let Some((piece_bytes, body)) = data.split_first() else {
        return;
    };
    for encoding in [Encoding::Binary, Encoding::Text] {
        let whole = read(encoding, std::iter::once(body.to_vec()));
        let cut = read(
            encoding,
            body.chunks(usize::from(*piece_bytes).max(1)).map(<[u8]>::to_vec),
        );
        assert_eq!(whole, cut);
        if let Ok(message) = whole {
            assert!(message.len() <= MAX_REQUEST_BYTES);
        }
    }
}
