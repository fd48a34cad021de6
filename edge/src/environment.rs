//! The Worker's variables and bindings, as wrangler.toml declares them. Depends on [`runtime`](crate::runtime).

use std::{cell::OnceCell, rc::Rc};

use conclave_harness::base64url;
use conclave_registry::RegistryConfiguration;
use conclave_topiclog::{Configuration, ConfigurationError, platform::ObjectName};
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use crate::runtime::{Fetcher, log_error};

/// What the name of a shard begins with; its number follows.
const SHARD_PREFIX: &str = "shard-";

/// The seed of the Registry's signing key: 32 bytes as unpadded base64url. A secret.
const REGISTRY_SEED: &str = "CONCLAVE_REGISTRY_SEED";

/// What an agent has to present to register. A secret.
const REGISTRY_ADMISSION_TOKEN: &str = "CONCLAVE_REGISTRY_ADMISSION_TOKEN";

/// What the variables say, checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) backend: Rc<Configuration>,
    pub(crate) registry: RegistryConfiguration,
}

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
                let settings = read_settings(&self.variables()).map(Rc::new);
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

fn read_settings(variables: &[(String, String)]) -> Result<Settings, ConfigurationError> {
    let find = |key: &str| {
        variables
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    };
    let signing_seed = find(REGISTRY_SEED)
        .map(|seed| base64url::decode_array(seed))
        .transpose();
    Ok(Settings {
        backend: Rc::new(Configuration::from_variables(
            variables.iter().map(|(key, value)| (key, value)),
        )?),
        registry: RegistryConfiguration {
            signing_seed: signing_seed.map_err(|error| ConfigurationError {
                key: REGISTRY_SEED.to_owned(),
                reason: format!("is not 32 bytes in unpadded base64url: {error}"),
            })?,
            admission_token: find(REGISTRY_ADMISSION_TOKEN).cloned(),
        },
    })
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
    fn a_seed_that_is_none_is_refused_with_the_name_of_its_variable() {
        let with_seed = |seed: &str| read_settings(&[(REGISTRY_SEED.to_owned(), seed.to_owned())]);
        assert_eq!(
            with_seed(&"A".repeat(43)).expect("a seed").registry.signing_seed,
            Some([0; 32])
        );
        for seed in ["", "short", &"A".repeat(44), &"=".repeat(43)] {
            assert_eq!(with_seed(seed).expect_err("no seed").key, REGISTRY_SEED);
        }
    }

    #[test]
    fn a_name_of_no_object_is_refused() {
        for name in ["", "shard-", "shard--1", "shard-x", "Sequencer"] {
            assert_eq!(from_name(name), None, "{name}");
        }
    }
}
