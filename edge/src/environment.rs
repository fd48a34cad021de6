//! The Worker's variables and bindings, as wrangler.toml declares them. Depends on [`runtime`](crate::runtime).

use std::{cell::OnceCell, rc::Rc};

use conclave_configuration::{ConfigurationError, Settings, Value};
use conclave_topiclog::platform::ObjectName;
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use crate::runtime::{self, Fetcher, log_error};

/// What the name of a shard begins with; its number follows.
const SHARD_PREFIX: &str = "shard-";

thread_local! {
    /// The variables never change while an isolate lives, and it serves one deployment.
    static SETTINGS: OnceCell<Result<Rc<Settings>, ConfigurationError>> = const { OnceCell::new() };
}

/// The runtime's `env` object.
#[derive(Clone, Debug)]
pub(crate) struct Environment(Object);

impl Environment {
    pub(crate) fn new(env: Object) -> Self {
        Self(env)
    }

    /// The settings, checked when they are first asked for. A bad one is logged then, with the variable's name.
    ///
    /// # Errors
    /// The variable that cannot be used: nothing may be served.
    pub(crate) fn settings(&self) -> Result<Rc<Settings>, ConfigurationError> {
        SETTINGS.with(|cell| {
            cell.get_or_init(|| {
                let settings = Settings::from_variables(self.variables(), runtime::now_ns()).map(Rc::new);
                if let Err(error) = &settings {
                    log_error(&format!(
                        "nothing is served until this variable is mended: {error}"
                    ));
                }
                settings
            })
            .clone()
        })
    }

    /// The variables, and the bindings among them.
    fn variables(&self) -> impl Iterator<Item = (String, Value)> {
        let entries = Object::entries(&self.0).into_iter();
        entries.filter_map(|entry| {
            let entry = entry.unchecked_into::<Array>();
            Some((entry.get(0).as_string()?, to_value(&entry.get(1))))
        })
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

/// A variable as text. wrangler also passes on numbers and booleans that are written without quotes.
fn to_value(value: &JsValue) -> Value {
    let text = value
        .as_string()
        .or_else(|| match (value.as_f64(), value.as_bool()) {
            (None, None) => None,
            _ => Some(runtime::to_text(value)),
        });
    text.map_or(Value::Other, Value::Text)
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
