//! The backend as its clients see it, on a deterministic platform: every behaviour with one shard and with four.

mod associations;
mod birth;
mod boundary;
mod client;

mod conditions;
mod handles;
mod identities;
mod inboxes;
mod key_packages;
mod publish;
mod publish_faults;
mod query;
mod retention;
mod services;
mod spanning;
mod spanning_faults;
mod streams;
mod streams_faults;
mod subscribe;
mod subscribe_size;
mod updates;
mod updates_at_once;
mod wallets;
mod world;
