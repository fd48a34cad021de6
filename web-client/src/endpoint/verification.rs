//! The verification of a store before its endpoint starts: in slices, and with the platform's help.
//!
//! Most of its time would be signatures. The platform verifies them faster than WebAssembly and, in some browsers, beside this
//! thread, so it is asked about some records while those before them are judged here. What it does not vouch for is
//! verified here.

use conclave_conversation::engine::{Context, Engine, Local, OpenError, Startup, Step};
use conclave_conversation::store::Snapshot;
use conclave_harness::UnverifiedSignature;
use js_sys::Uint8Array;
use wasm_bindgen_futures::JsFuture;

use crate::observer::{Observer, Phase};
use crate::platform::{chance::BrowserRandomness, timer};

/// How long verification goes on before the page may do something else. A frame is 16 ms.
const SLICE_MS: u64 = 6;

/// Certified records that are looked at ahead at once, at most: about a slice of what is left to do here.
const RECORDS_AHEAD: usize = 16;

/// Signatures after which no further record is looked at: of 32 members a record has dozens.
const SIGNATURES_AHEAD: usize = 64;

/// Fewer signatures than this are verified here sooner than the platform answers.
const SIGNATURES_MIN: usize = 8;

/// Verifies the store in slices, so that a page that opens a long history keeps painting.
pub(super) async fn verify(
    local: Local,
    rows: &Snapshot,
    observer: &Observer,
) -> Result<(Engine, Step), OpenError> {
    let mut startup = Startup::begin(local, rows)?;
    let mut ahead = Ahead::default();
    let mut slice_ends_ms = 0;
    loop {
        let records = ahead.take_verdicts().await;
        // The platform goes on with these while those it spoke for are judged here.
        ahead = Ahead::look(&mut startup, observer);
        // Where nothing is ahead yet, one step enters the next conversation.
        let steps = if ahead.records == 0 {
            records.max(1)
        } else {
            records
        };
        for _ in 0..steps {
            if timer::now_ms() >= slice_ends_ms {
                let (done, total) = startup.progress();
                observer.tell_opening(Phase::Verifying { done, total });
                observer.breathe().await;
                slice_ends_ms = timer::now_ms() + SLICE_MS;
            }
            if startup.advance()? {
                return startup.finish(Context {
                    now_ms: timer::now_ms(),
                    randomness: &mut BrowserRandomness,
                });
            }
        }
    }
}

/// The next records of a conversation, none where there are no more.
#[derive(Default)]
struct Ahead {
    records: usize,
    signatures: Vec<UnverifiedSignature>,
    /// The platform's answer, if it was asked: a 1 for each signature that holds.
    verdicts: Option<JsFuture>,
}

impl Ahead {
    fn look(startup: &mut Startup<'_>, observer: &Observer) -> Self {
        let mut ahead = Ahead::default();
        while ahead.records < RECORDS_AHEAD && ahead.signatures.len() < SIGNATURES_AHEAD {
            let Some(signatures) = startup.look_ahead() else {
                break;
            };
            ahead.records += 1;
            ahead.signatures.extend(signatures);
        }
        if ahead.signatures.len() >= SIGNATURES_MIN {
            ahead.verdicts = Some(observer.verify(&packed(&ahead.signatures)));
        }
        ahead
    }

    /// Waits for the platform, takes its word, and returns how many records there are.
    async fn take_verdicts(self) -> usize {
        if let Some(verdicts) = self.verdicts {
            // A platform that fails vouches for nothing.
            let verdicts = Uint8Array::new(&verdicts.await.unwrap_or_default()).to_vec();
            for (signature, holds) in self.signatures.into_iter().zip(verdicts) {
                if holds == 1 {
                    signature.holds();
                }
            }
        }
        self.records
    }
}

/// Signatures as `ts/signatures.ts` reads them: for each the key, the signature, the length of the text in four bytes, the
/// least significant first, and the text.
fn packed(signatures: &[UnverifiedSignature]) -> Vec<u8> {
    let mut packed = Vec::new();
    for signature in signatures {
        let text = signature.signed_text();
        packed.extend_from_slice(signature.key().as_bytes());
        packed.extend_from_slice(signature.signature().as_bytes());
        packed.extend_from_slice(&(text.len() as u32).to_le_bytes());
        packed.extend_from_slice(text.as_bytes());
    }
    packed
}
