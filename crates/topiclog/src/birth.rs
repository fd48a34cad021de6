//! What a deployment may never change: its identifier, its shard count, its slot table and its Router instance.
