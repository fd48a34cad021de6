//! One Durable Object, whatever its role: what `edge/js/object.js` holds and calls. Depends on `topiclog`'s objects and
//! on [`platform`](crate::platform).

use std::{cell::RefCell, rc::Rc};

use conclave_grpc_web::{Code, Status};
use conclave_registry::Registry;
use conclave_topiclog::{
    Sequencer, Shard, answer,
    platform::{ObjectName, ObjectPlatform as _, Platform as _, SocketId},
};
use js_sys::{Object, Promise, Uint8Array};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::{
    environment::{Environment, from_name},
    platform::{DurableObject, RuntimeRandomness},
    runtime::{ObjectContext, log_error},
    sql::Database,
};

/// What the object does, opened.
#[derive(Clone)]
enum Role {
    Sequencer(Rc<Sequencer<DurableObject>>),
    Shard(Rc<Shard<DurableObject>>),
    Registry(Rc<Registry<Database>>),
}

impl Role {
    async fn handle(self, platform: &DurableObject, method: &str, request: &[u8]) -> Vec<u8> {
        match self {
            Self::Registry(registry) => {
                let answer = registry.handle(method, request, platform.now_ns(), &mut RuntimeRandomness);
                answer::encode(answer, None)
            }
            Self::Sequencer(sequencer) => sequencer.handle(method, request).await,
            Self::Shard(shard) => shard.handle(method, request).await,
        }
    }
}

/// Says in the log what only an operator can mend, once in a row: a storage that belongs to another deployment, or that
/// fails. Refusals are the caller's own affair.
#[derive(Default)]
struct FailureLog(RefCell<String>);

impl FailureLog {
    /// The first byte of an encoded answer that is a response: the tag of its field 1. It spares decoding it again.
    const RESPONSE_TAG: u8 = 0x0a;

    fn note(&self, name: &str, answer: &[u8]) {
        if answer.first() == Some(&Self::RESPONSE_TAG) {
            return;
        }
        let Err(status) = answer::decode(answer.to_vec()).result else {
            return;
        };
        if !matches!(status.code, Code::Unavailable | Code::Internal | Code::DataLoss) {
            return;
        }
        if *self.0.borrow() != status.message {
            log_error(&format!("{name}: {}", status.message));
            self.0.replace(status.message);
        }
    }
}

/// One object's host.
#[wasm_bindgen]
pub struct ObjectHost {
    name: String,
    failures: Rc<FailureLog>,
    environment: Environment,
    platform: DurableObject,
    opened: RefCell<Option<Role>>,
    /// How often this run was called, sent a message or woken by its alarm.
    #[cfg(feature = "test-panics")]
    activity: std::cell::Cell<u32>,
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
            failures: Rc::default(),
            environment,
            platform,
            opened: RefCell::new(None),
            #[cfg(feature = "test-panics")]
            activity: std::cell::Cell::new(0),
        }
    }

    /// Runs a method and resolves with its encoded answer.
    pub fn call(&self, method: String, request: Vec<u8>) -> Promise {
        let role = self.open();
        let platform = self.platform.clone();
        let (name, failures) = (self.name.clone(), Rc::clone(&self.failures));
        #[cfg(feature = "test-panics")]
        let activity = self.activity.get();
        future_to_promise(async move {
            #[cfg(feature = "test-panics")]
            if method == crate::failure::ACTIVITY_METHOD {
                return Ok(Uint8Array::from(activity.to_string().as_bytes()).into());
            }
            #[cfg(feature = "test-panics")]
            if let Some(answer) = crate::failure::in_object(&platform, &method).await {
                return Ok(Uint8Array::from(answer.as_slice()).into());
            }
            let answer = match role {
                Ok(role) => role.handle(&platform, &method, &request).await,
                Err(answer) => answer,
            };
            failures.note(&name, &answer);
            Ok(Uint8Array::from(answer.as_slice()).into())
        })
    }

    /// A message stream was accepted.
    pub fn accepted(&self, socket: f64) {
        if let Ok(Role::Shard(shard)) = self.open() {
            shard.opened(socket_id(socket));
        }
    }

    /// A message arrived on a stream. Resolves when it is dealt with.
    pub fn message(&self, socket: f64, message: Vec<u8>) -> Promise {
        let role = self.open();
        future_to_promise(async move {
            if let Ok(Role::Shard(shard)) = role {
                shard.message(socket_id(socket), &message).await;
            }
            Ok(JsValue::UNDEFINED)
        })
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
                Ok(Role::Registry(_)) => {}
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
        #[cfg(feature = "test-panics")]
        self.activity.set(self.activity.get() + 1);
        if let Some(role) = self.opened.borrow().as_ref() {
            return Ok(role.clone());
        }
        let unavailable = |reason: &str| answer::encode(Err(Status::unavailable(reason)), None);
        let Ok(settings) = self.environment.settings() else {
            return Err(unavailable("the deployment's configuration cannot be used"));
        };
        let platform = self.platform.clone();
        let configuration = Rc::clone(&settings.backend);
        let opened = match from_name(&self.name) {
            Some(ObjectName::Shard(index)) => Shard::open(platform, index, configuration)
                .map(Role::Shard)
                .map_err(|error| (error.answer(), error.to_string())),
            Some(ObjectName::Sequencer) => Sequencer::open(platform, configuration)
                .map(Role::Sequencer)
                .map_err(|error| (error.answer(), error.to_string())),
            Some(ObjectName::Registry) => Registry::open(
                platform.sql().clone(),
                settings.registry.clone(),
                &mut RuntimeRandomness,
            )
            .map(|registry| Role::Registry(Rc::new(registry)))
            .map_err(|error| (unavailable("the Registry cannot be opened"), error.to_string())),
            None => Err((
                unavailable("there is no such object"),
                "no object has this name".to_owned(),
            )),
        };
        let role = opened.map_err(|(answer, reason)| {
            log_error(&format!("{}: {reason}", self.name));
            answer
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_told_from_a_failure_by_its_first_byte() {
        for response in [Vec::new(), b"response".to_vec()] {
            assert_eq!(
                answer::encode(Ok(response), None).first(),
                Some(&FailureLog::RESPONSE_TAG)
            );
        }
        let failure = answer::encode(Err(Status::unavailable("")), Some("rti_x"));
        assert_ne!(failure.first(), Some(&FailureLog::RESPONSE_TAG));
    }
}
