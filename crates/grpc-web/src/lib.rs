#![forbid(unsafe_code)]
//! gRPC-Web without I/O: frames, trailers, status, deadlines and content types, for servers and clients.
