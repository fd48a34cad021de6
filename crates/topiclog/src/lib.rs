#![forbid(unsafe_code)]
//! The sequencer, the topic shards, reads and subscriptions, generic over the platform they run on.
