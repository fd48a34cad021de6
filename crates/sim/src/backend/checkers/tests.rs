//! Each checker finds what it is there for.
