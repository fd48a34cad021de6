//! How a store is opened. What its transitions do is held by `conclave-store-suite`, for every store alike.

mod openings;
