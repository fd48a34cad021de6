
//! The Worker and its Durable Objects: a thin platform under topiclog and registry.
