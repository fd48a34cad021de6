//! What `wrangler.toml` says of the deployment, as far as a local runtime needs it.
//!
//! One file describes the deployment for Cloudflare, for `wrangler dev` and for `cargo xtask dev`. A key that would
//! change what the worker sees and is not understood here is refused rather than left out.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use toml::{Table, Value};

/// Keys that concern building, deploying or observing, and mean nothing to a local runtime.
const OF_NO_CONCERN: &[&str] = &[
    "$schema",
    "account_id",
    "base_dir",
    "build",
    "dev",
    "env",
    "find_additional_modules",
    "keep_vars",
    "limits",
    "logpush",
    "minify",
    "no_bundle",
    "observability",
    "placement",
    "preserve_file_names",
    "preview_urls",
    "route",
    "routes",
    "rules",
    "send_metrics",
    "tail_consumers",
    "upload_source_maps",
    "workers_dev",
];

/// Keys that are read below.
const UNDERSTOOD: &[&str] = &[
    "assets",
    "compatibility_date",
    "compatibility_flags",
    "durable_objects",
    "main",
    "migrations",
    "name",
    "vars",
];

/// A deployment of the worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deployment {
    /// The worker's name, which is part of where its objects keep their storage.
    pub(crate) name: String,
    /// The entry module, relative to the root of the checkout.
    pub(crate) main: PathBuf,
    /// The date whose behaviour of the runtime is asked for.
    pub(crate) compatibility_date: String,
    /// Behaviours switched on or off beside the date.
    pub(crate) compatibility_flags: Vec<String>,
    /// Variables, in the order of their names.
    pub(crate) variables: Vec<(String, Variable)>,
    /// Object namespaces.
    pub(crate) objects: Vec<ObjectBinding>,
    /// The static files, if there are any.
    pub(crate) assets: Option<Assets>,
}

/// What a variable of the worker holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Variable {
    /// A string.
    Text(String),
    /// Anything else, as JSON.
    Json(String),
    /// What the runtime finds in its own environment under the same name.
    FromEnvironment,
}

impl Variable {
    /// The text that the worker takes it for. A list or an object is none to it.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Json(json) if json.starts_with(['[', '{']) => None,
            // Nothing of a file says what it is.
            Self::FromEnvironment => None,
            Self::Text(text) | Self::Json(text) => Some(text),
        }
    }
}

/// A binding to a class of objects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ObjectBinding {
    /// The name in the worker's environment.
    pub(crate) name: String,
    /// The exported class.
    pub(crate) class: String,
    /// Whether its storage is SQLite.
    pub(crate) sqlite: bool,
}

/// The static files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Assets {
    /// The folder, relative to the root of the checkout.
    pub(crate) directory: PathBuf,
    /// The name in the worker's environment, if the worker asks for files itself.
    pub(crate) binding: Option<String>,
}

impl Deployment {
    /// Reads the text of a `wrangler.toml`.
    ///
    /// # Errors
    ///
    /// It is not TOML, lacks a key, or holds a key that is not understood; the message names it.
    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let table: Table = text.parse().context("it is not TOML")?;
        if let Some(key) = table.keys().find(|key| !is_known(key)) {
            bail!(
                "`{key}` is not understood by `cargo xtask dev`: teach it in xtask/src/dev/deployment.rs, or leave it out"
            );
        }
        let sqlite = sqlite_classes(&table)?;
        Ok(Self {
            name: string(&table, "name")?,
            main: string(&table, "main")?.into(),
            compatibility_date: string(&table, "compatibility_date")?,
            compatibility_flags: strings(&table, "compatibility_flags")?,
            variables: variables(&table)?,
            objects: objects(&table, &sqlite)?,
            assets: table
                .get("assets")
                .map(assets)
                .transpose()
                .context("in [assets]")?,
        })
    }

    /// Sets a variable, whatever it was.
    pub(crate) fn set(&mut self, name: &str, value: Variable) {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.to_owned(), value));
    }
}

fn is_known(key: &str) -> bool {
    UNDERSTOOD.contains(&key) || OF_NO_CONCERN.contains(&key)
}

fn string(table: &Table, key: &str) -> anyhow::Result<String> {
    let value = table.get(key).with_context(|| format!("`{key}` is missing"))?;
    Ok(value
        .as_str()
        .with_context(|| format!("`{key}` is not a string"))?
        .to_owned())
}

fn strings(table: &Table, key: &str) -> anyhow::Result<Vec<String>> {
    let Some(value) = table.get(key) else {
        return Ok(Vec::new());
    };
    let values = value
        .as_array()
        .with_context(|| format!("`{key}` is not a list"))?;
    values
        .iter()
        .map(|value| {
            Ok(value
                .as_str()
                .with_context(|| format!("`{key}` holds what is not a string"))?
                .to_owned())
        })
        .collect()
}

fn variables(table: &Table) -> anyhow::Result<Vec<(String, Variable)>> {
    let Some(value) = table.get("vars") else {
        return Ok(Vec::new());
    };
    let mut variables = Vec::new();
    for (name, value) in value.as_table().context("`vars` is not a table")? {
        let variable = match value {
            Value::String(text) => Variable::Text(text.clone()),
            other => Variable::Json(
                json(other)
                    .with_context(|| format!("in vars.{name}"))?
                    .to_string(),
            ),
        };
        variables.push((name.clone(), variable));
    }
    Ok(variables)
}

fn json(value: &Value) -> anyhow::Result<serde_json::Value> {
    Ok(match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(truth) => (*truth).into(),
        Value::Datetime(_) => bail!("a date has no form in JSON; write it as a string"),
        Value::Array(values) => values.iter().map(json).collect::<anyhow::Result<_>>()?,
        Value::Table(table) => serde_json::Value::Object(
            table
                .iter()
                .map(|(key, value)| Ok((key.clone(), json(value)?)))
                .collect::<anyhow::Result<_>>()?,
        ),
    })
}

fn objects(table: &Table, sqlite: &[String]) -> anyhow::Result<Vec<ObjectBinding>> {
    let Some(value) = table.get("durable_objects") else {
        return Ok(Vec::new());
    };
    let bindings = value
        .get("bindings")
        .and_then(Value::as_array)
        .context("`durable_objects.bindings` is not a list")?;
    let mut objects = Vec::new();
    for binding in bindings {
        let binding = binding
            .as_table()
            .context("a binding of `durable_objects` is not a table")?;
        let name = string(binding, "name").context("in durable_objects.bindings")?;
        let class = string(binding, "class_name").with_context(|| format!("in the binding {name}"))?;
        ensure!(
            !binding.contains_key("script_name"),
            "the binding {name} names another script, which cannot run here"
        );
        objects.push(ObjectBinding {
            sqlite: sqlite.contains(&class),
            name,
            class,
        });
    }
    Ok(objects)
}

/// The classes that the migrations leave with SQLite storage.
fn sqlite_classes(table: &Table) -> anyhow::Result<Vec<String>> {
    let Some(value) = table.get("migrations") else {
        return Ok(Vec::new());
    };
    let mut classes = Vec::new();
    for migration in value.as_array().context("`migrations` is not a list")? {
        let migration = migration.as_table().context("a migration is not a table")?;
        for key in ["renamed_classes", "transferred_classes", "deleted_classes"] {
            ensure!(
                !migration.contains_key(key),
                "a migration has `{key}`, which `cargo xtask dev` cannot carry out"
            );
        }
        classes.extend(strings(migration, "new_sqlite_classes")?);
    }
    Ok(classes)
}

fn assets(value: &Value) -> anyhow::Result<Assets> {
    let table = value.as_table().context("it is not a table")?;
    let binding = table
        .contains_key("binding")
        .then(|| string(table, "binding"))
        .transpose()?;
    Ok(Assets {
        directory: string(table, "directory")?.into(),
        binding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_no_text_to_the_worker_and_a_number_is() {
        let json = |json: &str| Variable::Json(json.to_owned());
        assert_eq!(json("7").as_text(), Some("7"));
        assert_eq!(json("true").as_text(), Some("true"));
        assert_eq!(Variable::Text("[1]".to_owned()).as_text(), Some("[1]"));
        assert_eq!(json(r#"[{"kid":"a"}]"#).as_text(), None);
        assert_eq!(json("{}").as_text(), None);
    }

    const WHOLE: &str = r#"
        name = "conclave"
        main = "target/worker/entry.js"
        compatibility_date = "2026-11-01"
        compatibility_flags = ["nodejs_compat"]
        workers_dev = true
        [vars]
        SHARDS = "4"
        LIMITS = { page = 1000, strict = true }
        [[durable_objects.bindings]]
        name = "SHARD"
        class_name = "Shard"
        [[durable_objects.bindings]]
        name = "OLD"
        class_name = "Old"
        [[migrations]]
        tag = "v1"
        new_sqlite_classes = ["Shard"]
        new_classes = ["Old"]
        [assets]
        directory = "./target/site"
        binding = "ASSETS"
        run_worker_first = true
    "#;

    #[test]
    fn a_whole_file_is_read() -> anyhow::Result<()> {
        let mut deployment = Deployment::read(WHOLE)?;
        assert_eq!(deployment.name, "conclave");
        assert_eq!(deployment.compatibility_flags, ["nodejs_compat"]);
        assert_eq!(
            deployment.objects,
            [
                ObjectBinding {
                    name: "SHARD".to_owned(),
                    class: "Shard".to_owned(),
                    sqlite: true
                },
                ObjectBinding {
                    name: "OLD".to_owned(),
                    class: "Old".to_owned(),
                    sqlite: false
                },
            ]
        );
        assert!(
            deployment
                .variables
                .contains(&("SHARDS".to_owned(), Variable::Text("4".to_owned())))
        );
        assert!(deployment.variables.contains(&(
            "LIMITS".to_owned(),
            Variable::Json(r#"{"page":1000,"strict":true}"#.to_owned())
        )));
        assert_eq!(
            deployment.assets,
            Some(Assets {
                directory: "./target/site".into(),
                binding: Some("ASSETS".to_owned())
            })
        );
        deployment.set("SHARDS", Variable::Text("1".to_owned()));
        assert_eq!(
            deployment
                .variables
                .iter()
                .filter(|(name, _)| name == "SHARDS")
                .count(),
            1
        );
        Ok(())
    }

    #[test]
    fn a_key_that_would_change_what_the_worker_sees_is_refused_by_name() {
        let error =
            Deployment::read(&format!("kv_namespaces = []\n{WHOLE}")).expect_err("an unknown binding");
        assert!(error.to_string().contains("`kv_namespaces`"), "{error}");
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = Deployment::read("name = \"x\"\nmain = \"y\"").expect_err("no date");
        assert!(
            error.to_string().contains("`compatibility_date` is missing"),
            "{error}"
        );
    }

    #[test]
    fn a_migration_that_moves_storage_is_refused() {
        let text = format!("{WHOLE}\n[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"Shard\"]");
        let error = Deployment::read(&text).expect_err("a deletion");
        assert!(error.to_string().contains("deleted_classes"), "{error}");
    }
}
