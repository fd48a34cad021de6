//! The body of a response, as the browser library reads it, in both encodings, in one piece and in many.

use conclave_grpc_web::client::{Event, ResponseDecoder, ResponseHead};

const MAX_MESSAGE_BYTES: usize = 4096;

fn read(content_type: &str, pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Event> {
    let head = ResponseHead {
        http_status: 200,
        content_type: Some(content_type),
        ..ResponseHead::default()
    };
    let mut decoder = ResponseDecoder::new(&head, MAX_MESSAGE_BYTES);
    let mut events = Vec::new();
    let mut take = |decoder: &mut ResponseDecoder| {
        while let Some(event) = decoder.next_event() {
            let is_end = matches!(event, Event::End(_));
            events.push(event);
            if is_end {
                return true;
            }
        }
        false
    };
    for piece in pieces {
        decoder.push(&piece);
        if take(&mut decoder) {
            return events;
        }
    }
    events.push(Event::End(decoder.finish()));
    events
}

/// The first byte says how long the pieces are. However a body is cut, it means the same.
pub fn run(data: &[u8]) {
    let Some((piece_bytes, body)) = data.split_first() else {
        return;
    };
    for content_type in ["application/grpc-web+proto", "application/grpc-web-text+proto"] {
        let whole = read(content_type, std::iter::once(body.to_vec()));
        let cut = read(
            content_type,
            body.chunks(usize::from(*piece_bytes).max(1)).map(<[u8]>::to_vec),
        );
        assert_eq!(whole, cut);
    }
}
