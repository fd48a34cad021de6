//! Which chains a deployment can ask, and at which nodes (CONF-070, CONF-011). Depends on nothing.

use std::{collections::BTreeMap, fmt};

/// The most chains a deployment may have.
pub const CHAINS_MAX: usize = 64;
/// The longest URL of a node, in bytes.
pub const RPC_URL_BYTES_MAX: usize = 2048;

/// What the name of a chain begins with, by CAIP-2.
const NAMESPACE: &str = "eip155";
/// What stands before and after a chain's number in the variable that names its node.
const KEY_PREFIX: &str = "CHAIN_";
const KEY_SUFFIX: &str = "_RPC_URL";

/// The URL of a node's JSON-RPC. It may hold a key, so it shows in no log and no message.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcUrl(String);

impl RpcUrl {
    /// Reads an `https` or `http` URL with a host and without credentials, fragment, whitespace or control characters.
    ///
    /// # Errors
    /// What is wrong with it, without a word of it.
    pub fn parse(text: &str) -> Result<RpcUrl, &'static str> {
        if text.len() > RPC_URL_BYTES_MAX {
            return Err("is longer than 2048 bytes");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("has characters that no URL has");
        }
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))
            .ok_or("does not begin with https:// or http://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        if host.is_empty() {
            return Err("has no host");
        }
        if authority.contains('@') {
            return Err("has credentials before its host, which are not sent");
        }
        if rest.contains('#') {
            return Err("has a fragment");
        }
        Ok(RpcUrl(text.to_owned()))
    }

    /// The URL, to be fetched and never shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RpcUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RpcUrl(…)")
    }
}

/// The node of each chain, by the chain's EIP-155 number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainRoutes(BTreeMap<u64, RpcUrl>);

impl ChainRoutes {
    /// The number in a variable's name `CHAIN_<number>_RPC_URL`: canonical decimal. `None` for any other name.
    #[must_use]
    pub fn chain_of_key(name: &str) -> Option<u64> {
        let number = name.strip_prefix(KEY_PREFIX)?.strip_suffix(KEY_SUFFIX)?;
        let is_canonical =
            number.bytes().all(|digit| digit.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
        is_canonical.then(|| number.parse().ok()).flatten()
    }

    /// Adds a chain.
    ///
    /// # Errors
    /// What is wrong with the URL, or that there are too many chains.
    pub fn set(&mut self, chain_id: u64, url: &str) -> Result<(), &'static str> {
        let url = RpcUrl::parse(url)?;
        self.0.insert(chain_id, url);
        if self.0.len() > CHAINS_MAX {
            return Err("is one chain more than the 64 there may be");
        }
        Ok(())
    }

    /// The node of a chain.
    #[must_use]
    pub fn get(&self, chain_id: u64) -> Option<&RpcUrl> {
        self.0.get(&chain_id)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The chains by their CAIP-2 names, lowest number first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0
            .keys()
            .map(|number| format!("{NAMESPACE}:{number}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_url_is_http_with_a_host_and_nothing_that_would_not_be_sent() {
        for url in [
            "https://node.example",
            "http://127.0.0.1:8545",
            "http://[::1]:8545/",
            "https://node.example/v3/key?x=1@2",
        ] {
            assert_eq!(
                RpcUrl::parse(url).map(|url| url.expose().to_owned()),
                Ok(url.to_owned())
            );
        }
        let long = format!("https://node.example/{}", "x".repeat(RPC_URL_BYTES_MAX));
        for url in [
            "",
            "node.example",
            "ftp://node.example",
            "HTTPS://node.example",
            "https://",
            "https:///path",
            "https://:8545",
            "https://user:password@node.example",
            "https://node.example/#key",
            "https://node.example/a b",
            "https://node.example/\n",
            &long,
        ] {
            assert!(RpcUrl::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_nodes_url_shows_in_no_debug_output() {
        let mut routes = ChainRoutes::default();
        routes.set(1, "https://node.example/secret").expect("a URL");
        assert!(!format!("{routes:?}").contains("secret"));
    }

    #[test]
    fn a_variable_names_a_chain_by_its_canonical_number() {
        assert_eq!(ChainRoutes::chain_of_key("CHAIN_1_RPC_URL"), Some(1));
        assert_eq!(
            ChainRoutes::chain_of_key("CHAIN_18446744073709551615_RPC_URL"),
            Some(u64::MAX)
        );
        for name in [
            "CHAIN__RPC_URL",
            "CHAIN_01_RPC_URL",
            "CHAIN_+1_RPC_URL",
            "CHAIN_0x1_RPC_URL",
            "CHAIN_18446744073709551616_RPC_URL",
            "CHAIN_1_RPC",
            "CHAIN_1",
        ] {
            assert_eq!(ChainRoutes::chain_of_key(name), None, "{name}");
        }
    }

    #[test]
    fn chains_are_published_by_name_in_order_and_no_more_than_the_bound() {
        let mut routes = ChainRoutes::default();
        for chain in (0..CHAINS_MAX as u64).rev() {
            routes.set(chain, "https://node.example").expect("a chain");
        }
        assert_eq!(routes.names()[..2], ["eip155:0", "eip155:1"]);
        assert!(routes.set(5, "https://other.example").is_ok());
        assert!(routes.set(64, "https://node.example").is_err());
    }
}
