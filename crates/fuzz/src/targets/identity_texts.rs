//! The texts that name accounts, handles, chains, nodes and topics.

use conclave_envelope::Topic;
use conclave_identity::{AccountId, EthereumAddress, Handle, LookupKey};
use conclave_topiclog::chain_routes::{ChainRoutes, RpcUrl};

/// What is read is written back as it was, or in lower case where case does not count.
pub fn run(data: &[u8]) {
    if let Ok(topic) = Topic::parse(data) {
        assert_eq!(topic.as_bytes(), data);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(address) = EthereumAddress::parse(text) {
        assert_eq!(address.to_string(), text);
    }
    if let Some(account) = AccountId::parse(text) {
        let again = format!("eip155:{}:{}", account.chain_id, account.address);
        assert_eq!(again, text.to_ascii_lowercase());
    }
    if let Some(handle) = Handle::parse(text) {
        assert_eq!(handle.as_str(), text);
        assert_eq!(Handle::parse_any_case(&text.to_ascii_uppercase()), Some(handle));
    }
    for kind in 0..5 {
        let _ = LookupKey::parse(text, kind);
    }
    let _ = Topic::from_inbox_id(text);
    if let Ok(url) = RpcUrl::parse(text) {
        assert_eq!(url.expose(), text);
    }
    if let Some(chain) = ChainRoutes::chain_of_key(text) {
        assert_eq!(format!("CHAIN_{chain}_RPC_URL"), text);
    }
}
