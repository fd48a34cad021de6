//! The engine through its own doors: several engines, each over a store in memory, around an ordered Router.

mod authoring;
mod certification;
mod crashes;
mod delivering;
mod deviating;
mod reanchoring;
mod recovering;
mod restarts;
mod sending;
mod starting;
mod watching;
mod world;
