//! The configuration of a bare workerd, in Cap'n Proto text, for a deployment on this machine.

use std::{
    fmt::Write as _,
    path::{Component, Path, PathBuf},
};

use super::deployment::{Deployment, Variable};

/// The name of the socket, which the supervisor gives to workerd as an open descriptor.
pub(super) const SOCKET: &str = "http";

/// The worker that answers for static files as Cloudflare does.
pub(super) const ASSETS_WORKER: &str = include_str!("assets.js");

/// The compatibility date of [`ASSETS_WORKER`].
const ASSETS_COMPATIBILITY_DATE: &str = "2026-11-01";

/// A module of the worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Module {
    /// The name that other modules import it by, relative to the entry.
    pub(super) name: String,
    /// Where it lies, absolute.
    pub(super) file: PathBuf,
}

/// Everything a configuration is made of.
#[derive(Clone, Debug)]
pub(super) struct RuntimeConfig<'a> {
    /// What `wrangler.toml` says.
    pub(super) deployment: &'a Deployment,
    /// The modules, the entry first.
    pub(super) modules: &'a [Module],
    /// The folder of the static files, absolute.
    pub(super) site: &'a Path,
    /// The folder where objects keep their storage, absolute.
    pub(super) state: &'a Path,
    /// The folder that the configuration is written to, absolute: paths in it are relative to that folder.
    pub(super) folder: &'a Path,
}

impl RuntimeConfig<'_> {
    /// The configuration as text. [`ASSETS_WORKER`] is to be written as `assets.js` beside it.
    pub(super) fn render(&self) -> String {
        // A worker that has the files bound asks for them itself, and each RPC is spared a hop. The paths of files and
        // of RPCs are not the same ones, so the order that Cloudflare would take makes no difference.
        let entry = match &self.deployment.assets {
            Some(assets) if assets.binding.is_none() => "assets-first",
            _ => "worker",
        };
        let mut text = String::from("using Workerd = import \"/workerd/workerd.capnp\";\n\n");
        text.push_str("const config :Workerd.Config = (\n  services = [\n");
        text.push_str("    (name = \"worker\", worker = .worker),\n");
        let _ = writeln!(
            text,
            "    (name = \"state\", disk = (path = {}, writable = true)),",
            quoted(&self.state.to_string_lossy())
        );
        // Unlike Cloudflare's network, this machine's own services and its neighbours can be reached: a chain's node may
        // be one of them.
        text.push_str(
            "    (name = \"internet\", network = (allow = [\"public\", \"private\", \"local\"], tlsOptions = (trustBrowserCas = true))),\n",
        );
        if self.deployment.assets.is_some() {
            let _ = writeln!(
                text,
                "    (name = \"site\", disk = (path = {})),",
                quoted(&self.site.to_string_lossy())
            );
            text.push_str("    (name = \"assets\", worker = .assets),\n");
            text.push_str("    (name = \"assets-first\", worker = .assetsFirst),\n");
        }
        let _ = writeln!(
            text,
            "  ],\n  sockets = [(name = {}, http = (), service = {})],\n);",
            quoted(SOCKET),
            quoted(entry)
        );
        self.render_worker(&mut text);
        if self.deployment.assets.is_some() {
            render_assets(&mut text, "assets", "");
            render_assets(
                &mut text,
                "assetsFirst",
                ", (name = \"WORKER\", service = \"worker\")",
            );
        }
        text
    }

    fn render_worker(&self, text: &mut String) {
        let deployment = self.deployment;
        text.push_str("\nconst worker :Workerd.Worker = (\n  modules = [\n");
        for module in self.modules {
            let kind = match module.file.extension().and_then(|extension| extension.to_str()) {
                Some("wasm") => "wasm",
                Some("txt") => "text",
                Some("json") => "json",
                Some("bin") => "data",
                _ => "esModule",
            };
            let file = relative(self.folder, &module.file);
            let _ = writeln!(
                text,
                "    (name = {}, {kind} = embed {}),",
                quoted(&module.name),
                quoted(&file.to_string_lossy())
            );
        }
        let _ = writeln!(
            text,
            "  ],\n  compatibilityDate = {},",
            quoted(&deployment.compatibility_date)
        );
        let flags: Vec<_> = deployment
            .compatibility_flags
            .iter()
            .map(|flag| quoted(flag))
            .collect();
        let _ = writeln!(text, "  compatibilityFlags = [{}],", flags.join(", "));
        text.push_str("  durableObjectStorage = (localDisk = \"state\"),\n  durableObjectNamespaces = [\n");
        for object in &deployment.objects {
            // The key wrangler derives too: it names the folder of the class below the state.
            let key = format!("{}-{}", deployment.name, object.class);
            let _ = writeln!(
                text,
                "    (className = {}, uniqueKey = {}, enableSql = {}),",
                quoted(&object.class),
                quoted(&key),
                object.sqlite
            );
        }
        text.push_str("  ],\n  bindings = [\n");
        for object in &deployment.objects {
            let _ = writeln!(
                text,
                "    (name = {}, durableObjectNamespace = {}),",
                quoted(&object.name),
                quoted(&object.class)
            );
        }
        for (name, variable) in &deployment.variables {
            let (kind, value) = match variable {
                Variable::Text(value) => ("text", value),
                Variable::Json(value) => ("json", value),
                Variable::FromEnvironment => ("fromEnvironment", name),
            };
            let _ = writeln!(text, "    (name = {}, {kind} = {}),", quoted(name), quoted(value));
        }
        if let Some(binding) = deployment
            .assets
            .as_ref()
            .and_then(|assets| assets.binding.as_ref())
        {
            let _ = writeln!(text, "    (name = {}, service = \"assets\"),", quoted(binding));
        }
        text.push_str("  ],\n);\n");
    }
}

fn render_assets(text: &mut String, constant: &str, more_bindings: &str) {
    let _ = writeln!(
        text,
        "\nconst {constant} :Workerd.Worker = (\n  modules = [(name = \"assets.js\", esModule = embed \"assets.js\")],\n  \
         compatibilityDate = {},\n  bindings = [(name = \"SITE\", service = \"site\"){more_bindings}],\n);",
        quoted(ASSETS_COMPATIBILITY_DATE)
    );
}

/// A string literal.
fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            control if control.is_ascii_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// The way from `folder` to `file`, both absolute.
fn relative(folder: &Path, file: &Path) -> PathBuf {
    let shared = folder
        .components()
        .zip(file.components())
        .take_while(|(one, other)| one == other)
        .count();
    folder
        .components()
        .skip(shared)
        .map(|_| Component::ParentDir)
        .chain(file.components().skip(shared))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dev::deployment::{Assets, ObjectBinding};

    fn deployment() -> Deployment {
        Deployment {
            name: "conclave".to_owned(),
            main: "target/worker/entry.js".into(),
            compatibility_date: "2026-11-01".to_owned(),
            compatibility_flags: vec!["one".to_owned(), "two".to_owned()],
            variables: vec![
                (
                    "NOTE".to_owned(),
                    Variable::Text("say \"x\\y\"\n\u{1}".to_owned()),
                ),
                ("LIMITS".to_owned(), Variable::Json("{\"page\":1}".to_owned())),
                ("SECRET".to_owned(), Variable::FromEnvironment),
            ],
            objects: vec![ObjectBinding {
                name: "SHARD".to_owned(),
                class: "Shard".to_owned(),
                sqlite: true,
            }],
            assets: Some(Assets {
                directory: "target/site".into(),
                binding: Some("ASSETS".to_owned()),
            }),
        }
    }

    fn render(deployment: &Deployment) -> String {
        RuntimeConfig {
            deployment,
            modules: &[
                Module {
                    name: "entry.js".to_owned(),
                    file: "/a/target/worker/entry.js".into(),
                },
                Module {
                    name: "index_bg.wasm".to_owned(),
                    file: "/a/target/worker/index_bg.wasm".into(),
                },
            ],
            site: Path::new("/a/target/site"),
            state: Path::new("/b/state"),
            folder: Path::new("/a/target/dev/1"),
        }
        .render()
    }

    #[test]
    fn modules_objects_variables_and_assets_are_bound() {
        let text = render(&deployment());
        for line in [
            r#"(name = "entry.js", esModule = embed "../../worker/entry.js"),"#,
            r#"(name = "index_bg.wasm", wasm = embed "../../worker/index_bg.wasm"),"#,
            r#"(className = "Shard", uniqueKey = "conclave-Shard", enableSql = true),"#,
            r#"(name = "SHARD", durableObjectNamespace = "Shard"),"#,
            r#"(name = "ASSETS", service = "assets"),"#,
            r#"(name = "internet", network = (allow = ["public", "private", "local"]"#,
            r#"(name = "state", disk = (path = "/b/state", writable = true)),"#,
            r#"compatibilityFlags = ["one", "two"],"#,
            r#"(name = "SECRET", fromEnvironment = "SECRET"),"#,
            r#"sockets = [(name = "http", http = (), service = "worker")],"#,
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn values_are_escaped() {
        let text = render(&deployment());
        assert!(
            text.contains(r#"(name = "NOTE", text = "say \"x\\y\"\n\x01"),"#),
            "{text}"
        );
        assert!(
            text.contains(r#"(name = "LIMITS", json = "{\"page\":1}"),"#),
            "{text}"
        );
    }

    #[test]
    fn files_come_before_a_worker_that_does_not_ask_for_them() {
        let mut deployment = deployment();
        if let Some(assets) = &mut deployment.assets {
            assets.binding = None;
        }
        let text = render(&deployment);
        assert!(text.contains(r#"service = "assets-first")]"#), "{text}");
        assert!(
            text.contains(r#"(name = "WORKER", service = "worker")"#),
            "{text}"
        );
        deployment.assets = None;
        let text = render(&deployment);
        assert!(text.contains(r#"service = "worker")]"#), "{text}");
        assert!(!text.contains("assets"), "{text}");
    }

    #[test]
    fn relative_paths_climb_to_the_shared_folder() {
        assert_eq!(
            relative(Path::new("/a/b"), Path::new("/a/c/d")),
            PathBuf::from("../c/d")
        );
        assert_eq!(relative(Path::new("/a"), Path::new("/a/d")), PathBuf::from("d"));
    }
}
