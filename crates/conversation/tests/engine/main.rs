//! The engine through its own doors: several engines, each over a store in memory, around an ordered Router.

mod answering;
mod authoring;
mod beginnings;
mod byhand;
mod certification;
mod crashes;
mod delivering;
mod deviating;
mod fencing;
mod flooding;
mod judging;
mod migrating;
mod planted;
mod reading;
mod reanchoring;
mod recovering;
mod repeating;
mod restarts;
mod scenario;
mod sending;
mod starting;
mod successors;
mod upgrading;
mod waiting;
mod watching;
mod world;
