//! The requests of the identity service, within their bounds (contract sections 6 and 7). What an identifier means is
//! not known here.

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{GetInboxIdsRequest, VerifySmartContractWalletSignaturesRequest};
use prost::Message as _;

use super::read::{RequestFailure, check_entries};
use crate::limits::Limits;

/// Decodes a GetInboxIds. Its entries are counted before they are decoded.
///
/// # Errors
/// [`RequestFailure`] when it has more than max_lookup_identifiers, or does not decode.
pub fn decode_lookup(encoded: Bytes, limits: &Limits) -> Result<GetInboxIdsRequest, RequestFailure> {
    check_entries(
        "requests",
        &encoded,
        "max_lookup_identifiers",
        limits.max_lookup_identifiers,
    )?;
    Ok(GetInboxIdsRequest::decode(encoded)?)
}

/// Decodes a VerifySmartContractWalletSignatures. Its entries are counted before they are decoded.
///
/// # Errors
/// [`RequestFailure`] when it has more than max_scw_signatures, or does not decode.
pub fn decode_verification(
    encoded: Bytes,
    limits: &Limits,
) -> Result<VerifySmartContractWalletSignaturesRequest, RequestFailure> {
    check_entries(
        "signatures",
        &encoded,
        "max_scw_signatures",
        limits.max_scw_signatures,
    )?;
    Ok(VerifySmartContractWalletSignaturesRequest::decode(encoded)?)
}

#[cfg(test)]
mod tests {
    use conclave_proto::xmtp::backend::v1::{
        get_inbox_ids_request, verify_smart_contract_wallet_signatures_request::Signature,
    };

    use super::*;

    // API-281
    #[test]
    fn each_request_has_as_many_entries_as_its_limit_and_no_more() {
        let limits = Limits {
            max_lookup_identifiers: 3,
            max_scw_signatures: 2,
            ..Limits::default()
        };
        let lookup = |entries| {
            let requests = vec![get_inbox_ids_request::Request::default(); entries];
            decode_lookup(GetInboxIdsRequest { requests }.encode_to_vec().into(), &limits)
        };
        assert_eq!(lookup(3).map(|request| request.requests.len()), Ok(3));
        assert!(matches!(
            lookup(4),
            Err(RequestFailure::TooMany { count: 4, max: 3, .. })
        ));
        let verification = |entries| {
            let signatures = vec![Signature::default(); entries];
            let request = VerifySmartContractWalletSignaturesRequest { signatures };
            decode_verification(request.encode_to_vec().into(), &limits)
        };
        assert_eq!(verification(2).map(|request| request.signatures.len()), Ok(2));
        assert!(matches!(
            verification(3),
            Err(RequestFailure::TooMany { count: 3, max: 2, .. })
        ));
    }

    /// Were they decoded to be counted, they would not fit the memory they are served from.
    #[test]
    fn entries_are_counted_before_they_are_decoded() {
        let encoded = Bytes::from([0x0a, 0].repeat(1_000_000));
        for failure in [
            decode_lookup(encoded.clone(), &Limits::default()).map(drop),
            decode_verification(encoded, &Limits::default()).map(drop),
        ] {
            assert!(matches!(
                failure,
                Err(RequestFailure::TooMany { count: 1_000_000, .. })
            ));
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        let broken = Bytes::from_static(&[0x0a, 9]);
        assert!(matches!(
            decode_lookup(broken.clone(), &Limits::default()),
            Err(RequestFailure::Undecodable(_))
        ));
        assert!(decode_verification(broken, &Limits::default()).is_err());
    }
}
