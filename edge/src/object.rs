//! One Durable Object, whatever its role: what `edge/js/object.js` holds and calls. Depends on `topiclog`'s objects and
//! on [`platform`](crate::platform).

use std::{cell::RefCell, rc::Rc};

use conclave_grpc_web::Status;
use conclave_topiclog::{
    Sequencer, Shard, answer,
    platform::{ObjectName, SocketId},
};
use js_sys::{Object, Promise, Uint8Array};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::{
    environment::{Environment, from_name},
    platform::DurableObject,
    runtime::{ObjectContext, log_error},
};

/// What the object does, opened.
#[derive(Clone)]
enum Role {
    Sequencer(Rc<Sequencer<DurableObject>>),
    Shard(Rc<Shard<DurableObject>>),
}

impl Role {
    async fn handle(self, method: &str, request: &[u8]) -> Vec<u8> {
        match self {
            Self::Sequencer(sequencer) => sequencer.handle(method, request).await,
            Self::Shard(shard) => shard.handle(method, request).await,
        }
    }
}

/// One object's host.
#[wasm_bindgen]
pub struct ObjectHost {
    name: String,
    environment: Environment,
    platform: DurableObject,
    opened: RefCell<Option<Role>>,
}

#[wasm_bindgen]
impl ObjectHost {
    /// The host of the object called `name`.
    #[wasm_bindgen(constructor)]
    pub fn new(name: String, context: ObjectContext, env: Object) -> Self {
        let environment = Environment::new(env);
        let platform = DurableObject::new(environment.clone(), context);
        Self {
            name,
            environment,
            platform,
            opened: RefCell::new(None),
        }
    }

    /// Runs a method and resolves with its encoded answer.
    pub fn call(&self, method: String, request: Vec<u8>) -> Promise {
        let role = self.open();
        #[cfg(feature = "test-panics")]
        let platform = self.platform.clone();
        future_to_promise(async move {
            #[cfg(feature = "test-panics")]
            if let Some(answer) = crate::failure::in_object(&platform, &method).await {
                return Ok(Uint8Array::from(answer.as_slice()).into());
            }
            let answer = match role {
                Ok(role) => role.handle(&method, &request).await,
                Err(answer) => answer,
            };
            Ok(Uint8Array::from(answer.as_slice()).into())
        })
    }

    /// A message stream was accepted.
    pub fn accepted(&self, socket: f64) {
        if let Ok(Role::Shard(shard)) = self.open() {
            shard.opened(socket_id(socket));
        }
    }

    /// A message arrived on a stream.
    pub fn message(&self, socket: f64, message: &[u8]) {
        if let Ok(Role::Shard(shard)) = self.open() {
            shard.message(socket_id(socket), message);
        }
    }

    /// A message stream ended.
    pub fn closed(&self, socket: f64) {
        if let Ok(Role::Shard(shard)) = self.open() {
            shard.closed(socket_id(socket));
        }
    }

    /// The alarm went off. Rejects when the object could not be opened, so that the runtime sends it again.
    pub fn alarm(&self) -> Promise {
        let role = self.open();
        let name = self.name.clone();
        future_to_promise(async move {
            match role {
                Ok(Role::Shard(shard)) => shard.alarm().await,
                Ok(Role::Sequencer(sequencer)) => sequencer.alarm().await,
                Err(_) => return Err(JsValue::from_str(&format!("{name} cannot be opened"))),
            }
            Ok(JsValue::UNDEFINED)
        })
    }
}

impl ObjectHost {
    /// The role, opened on first use and again after a failure to open.
    ///
    /// # Errors
    /// The encoded answer to every call meanwhile.
    fn open(&self) -> Result<Role, Vec<u8>> {
        if let Some(role) = self.opened.borrow().as_ref() {
            return Ok(role.clone());
        }
        let configuration = self.environment.configuration().map_err(|_| {
            answer::encode(
                Err(Status::unavailable(
                    "the deployment's configuration cannot be used",
                )),
                None,
            )
        })?;
        let platform = self.platform.clone();
        let role = match from_name(&self.name) {
            Some(ObjectName::Shard(index)) => Shard::open(platform, index, configuration).map(Role::Shard),
            Some(ObjectName::Sequencer) => Sequencer::open(platform, configuration).map(Role::Sequencer),
            Some(ObjectName::Registry) | None => {
                let status = Status::unimplemented(format!("no object is called {:?}", self.name));
                return Err(answer::encode(Err(status), None));
            }
        };
        let role = role.map_err(|error| {
            log_error(&format!("{}: {error}", self.name));
            error.answer()
        })?;
        self.opened.replace(Some(role.clone()));
        Ok(role)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ids are whole and below 2^53"
)]
fn socket_id(socket: f64) -> SocketId {
    SocketId(socket as u64)
}
