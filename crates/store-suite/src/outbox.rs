//! Envelopes: begun, completed, discarded, and the copies that are owed.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

// CONV-H01
pub(crate) async fn an_envelope_is_begun_once_and_completed_once<S: Store>() {
    let store = store::<S>().await;
    applied(&store, enqueuing(0)).await;
    assert_eq!(
        apply(
            &store,
            T(Enqueue {
                outbound: outbound(0)
            })
        )
        .await,
        Ok(Outcome::Existing)
    );
    assert!(
        conflict(
            apply(
                &store,
                T(Enqueue {
                    outbound: outbound(2)
                })
            )
            .await
        ),
        "numbers have no gaps"
    );
    let begin = || {
        T(BeginOutbound {
            outbound_sequence: 0,
            outbound_id: "msg_0".to_owned(),
        })
    };
    let complete = || {
        T(CompleteOutbound {
            outbound_sequence: 0,
            outbound_id: "msg_0".to_owned(),
        })
    };
    assert_eq!(apply(&store, begin()).await, Ok(Outcome::Applied), "initial");
    assert_eq!(apply(&store, begin()).await, Ok(Outcome::Existing), "retry");
    assert_eq!(apply(&store, complete()).await, Ok(Outcome::Applied));
    assert_eq!(apply(&store, complete()).await, Ok(Outcome::Existing));
    assert!(invalid(apply(&store, begin()).await));
    let unknown = CompleteOutbound {
        outbound_sequence: 5,
        outbound_id: "msg_5".to_owned(),
    };
    assert!(invalid(apply(&store, T(unknown)).await));
}

// CONV-H02, CONV-H03
pub(crate) async fn a_set_of_envelopes_is_discarded_whole_and_an_obligation_is_owed_again<S: Store>() {
    let store = store::<S>().await;
    let genesis_copy = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(0),
    };
    applied(&store, T(genesis_copy.clone())).await;
    assert_eq!(apply(&store, T(genesis_copy)).await, Ok(Outcome::Existing));
    let second = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(1),
    };
    assert!(conflict(apply(&store, T(second)).await), "one envelope serves it");
    applied(&store, enqueuing(1)).await;

    let attached: Vec<ObligationRow> = rows(&store).await;
    let altered = OutboundRow {
        attempted: true,
        ..outbound(1)
    };
    let with_altered = DiscardOutbound {
        outbound: vec![outbound(0), altered],
        obligations: attached.clone(),
    };
    assert!(conflict(apply(&store, T(with_altered)).await));
    let all = DiscardOutbound {
        outbound: vec![outbound(0), outbound(1)],
        obligations: attached,
    };
    applied(&store, T(all)).await;
    assert_eq!(rows::<OutboundRow>(&store).await, [], "nothing of them is kept");
    assert_eq!(rows::<ObligationRow>(&store).await[0].outbound_id, None);
    let again = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(2),
    };
    applied(&store, T(again)).await;
    let complete = CompleteOutbound {
        outbound_sequence: 0,
        outbound_id: "msg_0".to_owned(),
    };
    assert_eq!(
        apply(&store, T(complete)).await,
        Ok(Outcome::Existing),
        "nothing is left to complete"
    );
}
