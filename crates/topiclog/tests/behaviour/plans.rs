//! The statements of the hot paths find their rows by index, whatever the size of the tables.
