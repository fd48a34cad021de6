//! A Registry's storage belongs to one signer and one wire version.

use crate::support::*;
use conclave_harness::{WIRE_VERSION, WireVersions, randomness::SeededRandomness};
use conclave_registry::{Registry, RegistryConfiguration, RegistryOpenError};
use conclave_sql::{Sql, native::Database};

/// A database file that outlives the Registry on it.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("conclave-registry-{}-{name}", std::process::id()));
        let file = Self(path);
        file.remove();
        file
    }

    fn remove(&self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            drop(std::fs::remove_file(path));
        }
    }

    fn open(&self, seed: Option<[u8; 32]>, randomness: u64) -> Result<TestRegistry, RegistryOpenError> {
        let configuration = RegistryConfiguration {
            signing_seed: seed,
            admission_token: None,
        };
        let database = Database::open(&self.0).unwrap();
        Registry::open(database, configuration, &mut SeededRandomness::new(randomness))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

#[test]
fn a_registry_without_a_seed_draws_one_and_keeps_it() {
    let file = File::new("minted");
    let first = file.open(None, 1).unwrap();
    let card = registered(&first, 1, "alice-agent");
    let signer = first.signer();
    drop(first);
    let second = file.open(None, 2).unwrap();
    assert_eq!(second.signer(), signer);
    assert!(
        card.encoded()
            .verify(&second.signer(), &WireVersions::history())
            .is_ok()
    );
    // And what it answered it answers again.
    assert_eq!(
        register(&second, &asking(1, 1, "alice-agent"), 1),
        Registered::Card(Box::new(card))
    );
    assert_ne!(File::new("minted-other").open(None, 3).unwrap().signer(), signer);
}

#[test]
fn a_storage_of_another_signer_is_refused() {
    let file = File::new("signer");
    let founder = file.open(Some([1; 32]), 1).unwrap().signer();
    assert_eq!(
        file.open(Some([2; 32]), 1).unwrap_err(),
        RegistryOpenError::SignerMismatch {
            stored: founder.thumbprint_uri(),
            configured: key(2).public_key().thumbprint_uri(),
        }
    );
    assert_eq!(
        file.open(None, 1).unwrap_err(),
        RegistryOpenError::SeedMissing {
            stored: founder.thumbprint_uri()
        }
    );
    assert_eq!(file.open(Some([1; 32]), 1).unwrap().signer(), founder);
}

#[test]
fn a_minted_signer_is_not_replaced_by_a_configured_one() {
    let file = File::new("minted-then-configured");
    let minted = file.open(None, 1).unwrap().signer();
    assert!(matches!(
        file.open(Some([2; 32]), 1),
        Err(RegistryOpenError::SignerMismatch { .. })
    ));
    assert_eq!(file.open(None, 1).unwrap().signer(), minted);
}

#[test]
fn a_storage_of_another_wire_version_is_refused() {
    let file = File::new("version");
    drop(file.open(Some([1; 32]), 1).unwrap());
    let coming = "2027.101.0".parse().unwrap();
    let configuration = RegistryConfiguration {
        signing_seed: Some([1; 32]),
        admission_token: None,
    };
    let database = Database::open(&file.0).unwrap();
    let refused =
        Registry::open_speaking(database, configuration, coming, &mut SeededRandomness::new(1)).unwrap_err();
    assert_eq!(
        refused,
        RegistryOpenError::WireVersionMismatch {
            stored: WIRE_VERSION.to_string(),
            configured: coming
        }
    );
    assert!(file.open(Some([1; 32]), 1).is_ok());
}

#[test]
fn a_storage_of_another_schema_is_refused() {
    let file = File::new("schema");
    drop(file.open(Some([1; 32]), 1).unwrap());
    Database::open(&file.0)
        .unwrap()
        .execute("UPDATE foundation SET schema_version = 2", &[])
        .unwrap();
    assert_eq!(
        file.open(Some([1; 32]), 1).unwrap_err(),
        RegistryOpenError::SchemaVersion { stored: 2 }
    );
}

#[test]
fn a_registry_of_another_version_issues_cards_in_it() {
    let coming = "2027.101.0".parse().unwrap();
    let registry = Registry::open_speaking(
        Database::in_memory().unwrap(),
        configured(),
        coming,
        &mut SeededRandomness::new(1),
    )
    .unwrap();
    let request = proven(&asking(1, 1, "alice-agent"), 1);
    let response =
        call::<conclave_proto::conclave::registry::v1::registry_service::Register>(&registry, &request)
            .unwrap();
    let Some(conclave_proto::conclave::registry::v1::register_response::Result::AgentCard(bytes)) =
        response.result
    else {
        panic!("refused")
    };
    let card = conclave_harness::EncodedAgentCard::from_canonical_bytes(&bytes).unwrap();
    assert!(card.verify(&registry.signer(), &WireVersions::history()).is_err());
    assert!(
        card.verify(&registry.signer(), &WireVersions::of(&[coming]))
            .is_ok()
    );
}
