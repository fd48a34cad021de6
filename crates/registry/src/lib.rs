#![forbid(unsafe_code)]
//! The Registry of agents: who registered which name and key, and the cards it signed.
//!
//! It speaks `conclave.registry.v1` and keeps its state behind [`conclave_sql::Sql`]; whoever holds it brings the
//! time, the randomness and the transport. One `Registry` is the only writer of its database.
//!
//! | module | what it owns |
//! | - | - |
//! | [`configuration`] | what an operator decides |
//! | `storage` | the tables, and whom they belong to |
//! | `request` | requests, parsed: what comes out can be acted on |
//! | `registration` | who gets which name and key |
//! | `directory` | looking cards up |
//!
//! A name or key is given once and for ever: cards have no expiry, no rotation and no revocation.

pub mod configuration;
mod directory;
mod registration;
mod request;
mod storage;

use conclave_grpc_web::Status;
use conclave_harness::{AgentKey, PublicKey, Randomness, WIRE_VERSION, WireVersion};
use conclave_proto::{
    Rpc,
    conclave::registry::v1::{
        GetSignerResponse,
        registry_service::{GetSigner, List, Lookup, Register},
    },
};
use conclave_sql::Sql;
use prost::Message;

pub use configuration::{AdmissionToken, AdmissionTokenError, RegistryConfiguration};
pub use directory::LIST_PAGE_LENGTH;
pub use registration::MINT_ATTEMPTS_MAX;
pub use request::REQUEST_BYTES_MAX;
pub use storage::RegistryOpenError;

/// A Registry over its database.
#[derive(Debug)]
pub struct Registry<S> {
    sql: S,
    signer: AgentKey,
    admission: Option<AdmissionToken>,
    wire_version: WireVersion,
}

impl<S: Sql> Registry<S> {
    /// Opens the Registry in `sql`, founding it where there is none.
    ///
    /// Without a configured seed a new Registry draws one from `randomness` and keeps it in its storage.
    ///
    /// # Errors
    ///
    /// When the configuration is wrong, the storage belongs to another signer or another wire version, or SQL fails.
    /// Nothing is written then.
    pub fn open(
        sql: S,
        configuration: RegistryConfiguration,
        randomness: &mut dyn Randomness,
    ) -> Result<Self, RegistryOpenError> {
        Self::open_speaking(sql, configuration, WIRE_VERSION, randomness)
    }

    /// As [`Registry::open`], issuing cards in another wire version.
    ///
    /// # Errors
    ///
    /// As [`Registry::open`].
    pub fn open_speaking(
        sql: S,
        configuration: RegistryConfiguration,
        wire_version: WireVersion,
        randomness: &mut dyn Randomness,
    ) -> Result<Self, RegistryOpenError> {
        let signer = storage::open(&sql, configuration.signing_seed, wire_version, randomness)?;
        Ok(Self {
            sql,
            signer,
            admission: configuration.admission_token,
            wire_version,
        })
    }

    /// The key every card is signed with.
    pub const fn signer(&self) -> PublicKey {
        self.signer.public_key()
    }

    /// Rows written since the database was opened.
    pub fn rows_written(&self) -> u64 {
        self.sql.rows_written()
    }

    /// Answers the RPC at `path`, `/conclave.registry.v1.RegistryService/…`. `now_ns` is the time in nanoseconds since
    /// the Unix epoch; `randomness` mints agent ids.
    ///
    /// # Errors
    ///
    /// `UNIMPLEMENTED` for another path, `INVALID_ARGUMENT` for a request that is not one, `UNAUTHENTICATED` for a
    /// registration without its proof or admission, `RESOURCE_EXHAUSTED` when no free agent id was drawn, and
    /// `INTERNAL` when the storage fails. Nothing is stored then.
    pub fn handle(
        &self,
        path: &str,
        request: &[u8],
        now_ns: u64,
        randomness: &mut dyn Randomness,
    ) -> Result<Vec<u8>, Status> {
        if path == GetSigner::PATH {
            request::decode::<GetSigner>(request)?;
            Ok(self.get_signer().encode_to_vec())
        } else if path == Register::PATH {
            let attempt = request::registration(request::decode::<Register>(request)?)?;
            self.register(&attempt, now_ns, randomness)
                .map(|response| response.encode_to_vec())
        } else if path == Lookup::PATH {
            let key = request::lookup(request::decode::<Lookup>(request)?)?;
            self.lookup(&key).map(|response| response.encode_to_vec())
        } else if path == List::PATH {
            let after = request::list(request::decode::<List>(request)?)?;
            self.list(after).map(|response| response.encode_to_vec())
        } else {
            Err(Status::unimplemented(format!(
                "the Registry does not serve {path}"
            )))
        }
    }

    fn get_signer(&self) -> GetSignerResponse {
        let jwk = self.signer.public_key().jwk();
        GetSignerResponse {
            public_jwk: jwk.to_canonical_bytes().into(),
            thumbprint_uri: jwk.thumbprint_uri(),
        }
    }
}
