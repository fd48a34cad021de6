//! Cursors and watched conversations.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

pub(crate) async fn a_cursor_moves_forward_within_an_instance_and_starts_again_in_another<S: Store>() {
    let store = store::<S>().await;
    let cursor = |instance: &str, position| {
        T(AdvanceCursor {
            cursor: TransportCursorRow {
                feed: CONVERSATION.to_owned(),
                router_instance_id: instance.to_owned(),
                position,
            },
        })
    };
    applied(&store, cursor("rti_1", 5)).await;
    assert_eq!(apply(&store, cursor("rti_1", 5)).await, Ok(Outcome::Existing));
    assert!(conflict(apply(&store, cursor("rti_1", 4)).await));
    applied(&store, cursor("rti_1", 9)).await;
    applied(&store, cursor("rti_2", 1)).await;
}

pub(crate) async fn a_conversation_is_watched_until_it_is_held_or_dropped<S: Store>() {
    let store = store::<S>().await;
    let watch = |conversation: &str, number| {
        T(WatchConversation {
            watched: WatchedConversationRow {
                conversation_id: conversation.to_owned(),
                inviter_agent_id: OTHER.to_owned(),
                watch_sequence: number,
                canonical_membership: "members".to_owned(),
            },
        })
    };
    assert!(
        conflict(apply(&store, watch(CONVERSATION, 0)).await),
        "a held one is not watched"
    );
    applied(&store, watch("cnv_2", 0)).await;
    assert_eq!(apply(&store, watch("cnv_2", 1)).await, Ok(Outcome::Existing));
    let cursor = TransportCursorRow {
        feed: "cnv_2".to_owned(),
        router_instance_id: "rti_1".to_owned(),
        position: 3,
    };
    applied(&store, T(AdvanceCursor { cursor })).await;
    let drop = || {
        T(UnwatchConversation {
            conversation_id: "cnv_2".to_owned(),
            forget_cursor: true,
        })
    };
    applied(&store, drop()).await;
    assert!(rows::<TransportCursorRow>(&store).await.is_empty());
    assert_eq!(apply(&store, drop()).await, Ok(Outcome::Existing));
}
