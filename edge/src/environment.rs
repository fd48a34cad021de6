//! The Worker's variables and bindings, as wrangler.toml declares them. Depends on [`runtime`](crate::runtime).

use std::{cell::OnceCell, rc::Rc};

use conclave_topiclog::{Configuration, ConfigurationError, platform::ObjectName};
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use crate::runtime::{Fetcher, log_error};

/// What the name of a shard begins with; its number follows.
const SHARD_PREFIX: &str = "shard-";

thread_local! {
    /// The variables never change while an isolate lives, and it serves one deployment.
    static CONFIGURATION: OnceCell<Result<Rc<Configuration>, ConfigurationError>> = const { OnceCell::new() };
}

/// The runtime's `env` object.
#[derive(Clone, Debug)]
pub(crate) struct Environment(Object);

impl Environment {
    pub(crate) fn new(env: Object) -> Self {
        Self(env)
    }

    /// The configuration, checked when it is first asked for. A bad one is logged then, with the variable's name.
    pub(crate) fn configuration(&self) -> Result<Rc<Configuration>, ConfigurationError> {
        CONFIGURATION.with(|cell| {
            cell.get_or_init(|| {
                let configuration = Configuration::from_variables(self.variables()).map(Rc::new);
                if let Err(error) = &configuration {
                    log_error(&format!(
                        "the deployment serves nothing until this is mended: {error}"
                    ));
                }
                configuration
            })
            .clone()
        })
    }

    /// The variables that are text; bindings are objects.
    fn variables(&self) -> Vec<(String, String)> {
        let text = |entry: JsValue| {
            let entry = entry.unchecked_into::<Array>();
            Some((entry.get(0).as_string()?, entry.get(1).as_string()?))
        };
        Object::entries(&self.0).iter().filter_map(text).collect()
    }

    /// The namespace that holds `object`.
    ///
    /// # Errors
    /// The name of the binding, when the deployment does not declare it.
    pub(crate) fn namespace(&self, object: ObjectName) -> Result<Object, &'static str> {
        let binding = match object {
            ObjectName::Sequencer => "SEQUENCER",
            ObjectName::Shard(_) => "SHARD",
            ObjectName::Registry => "REGISTRY",
        };
        self.binding(binding).map(JsCast::unchecked_into).ok_or(binding)
    }

    /// What serves the static files, where the deployment has any.
    pub(crate) fn assets(&self) -> Option<Fetcher> {
        self.binding("ASSETS").map(JsCast::unchecked_into)
    }

    fn binding(&self, name: &str) -> Option<JsValue> {
        Reflect::get(&self.0, &JsValue::from_str(name))
            .ok()
            .filter(JsValue::is_object)
    }
}

/// The name of an object within its namespace.
pub(crate) fn to_name(object: ObjectName) -> String {
    match object {
        ObjectName::Sequencer => "sequencer".to_owned(),
        ObjectName::Shard(index) => format!("{SHARD_PREFIX}{index}"),
        ObjectName::Registry => "registry".to_owned(),
    }
}

/// The object of this name; `None` if none of ours has it.
pub(crate) fn from_name(name: &str) -> Option<ObjectName> {
    match name {
        "sequencer" => Some(ObjectName::Sequencer),
        "registry" => Some(ObjectName::Registry),
        _ => name
            .strip_prefix(SHARD_PREFIX)?
            .parse()
            .ok()
            .map(ObjectName::Shard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_found_again_by_its_name() {
        for object in [
            ObjectName::Sequencer,
            ObjectName::Registry,
            ObjectName::Shard(0),
            ObjectName::Shard(1023),
        ] {
            assert_eq!(from_name(&to_name(object)), Some(object));
        }
    }

    #[test]
    fn a_name_of_no_object_is_refused() {
        for name in ["", "shard-", "shard--1", "shard-x", "Sequencer"] {
            assert_eq!(from_name(name), None, "{name}");
        }
    }
}
